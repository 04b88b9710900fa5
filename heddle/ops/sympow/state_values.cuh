// Tile body of state_values. Included once per target, inside its namespace.
namespace state_values {

#include "heddle/ops/sympow/power_attention_rows.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const StateValues& a, const TileCoord& t) {
    block.inputs();
    const Head head(a.v, t);
    const ChunkTiles tiles = a.tiles();
    const i32 begin = tiles.begin(t[1]), rows = tiles.end(t[1]) - begin, columns = a.v.size[3];
    const i32 last = tiles.chunk_end(tiles.chunk_of(t[1])) - 1;
    auto decays = block.scratch(rows);
    head.load_gates(block, a.l, begin, rows, decays);
    const float end = a.l.exists() ? block.row(a.l, head.b, last).get(head.h) : 0.0f;
    block.map(rows, [&](auto i) { decays.store(i, exp(block.index(i) * 0.0f + end - decays.load(i))); });
    block.sync();
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      head.row(block, a.s, begin + m).store(i, head.row(block, a.v, begin + m).load(i) * decays.get(m));
    });
    block.map_rows(rows, a.s.size[3] - columns, [&](i32 m, auto i) {
      using Value = decltype(decays.load(i));
      const Value of = where_less(Value(block.index(i)), Value(0.5f), Value(decays.get(m)), Value(0.0f));
      head.row(block, a.s, begin + m).from(columns).store(i, of);
    });
  }
};

}  // namespace state_values
