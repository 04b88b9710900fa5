// Tile body of state_values_backward. Included once per target, inside its namespace.
namespace state_values_backward {

#include "heddle/ops/sympow/power_attention_rows.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const StateValuesBackward& a, const TileCoord& t) {
    block.inputs();
    const Head head(a.v, t);
    const ChunkTiles tiles = a.tiles();
    const i32 begin = tiles.chunk_begin(t[1]), end = tiles.chunk_end(t[1]), columns = a.v.size[3];
    auto decays = block.scratch(kChunkRows), sums = block.scratch(kChunkRows);
    const float last = a.l.exists() ? block.row(a.l, head.b, end - 1).get(head.h) : 0.0f;
    float all = 0, own = 0;  // sums for the chunk, and for its last position
    for (i32 first = begin; first < end; first += kChunkRows) {
      const i32 rows = end - first < kChunkRows ? end - first : kChunkRows;
      head.load_gates(block, a.l, first, rows, decays);
      block.map(rows, [&](auto i) { decays.store(i, exp(block.index(i) * 0.0f + last - decays.load(i))); });
      block.reduce_rows(sums, rows, columns, Sum(), [&](i32 m, auto i) {
        return head.row(block, a.v, first + m).load(i) * head.row(block, a.ds, first + m).load(i);
      });
      block.sync();
      auto given =
          block.row(a.ds, head.b, first, head.h).from(a.normalise ? columns : 0).every(a.ds.stride[1]);
      auto dl = head.times(block, a.dl, first);
      block.map(rows, [&](auto i) {
        const auto sum = a.normalise ? sums.load(i) + given.load(i) : sums.load(i);
        sums.store(i, sum * decays.load(i));
        dl.store(i, -sums.load(i));
      });
      block.map_rows(rows, columns, [&](i32 m, auto i) {
        head.row(block, a.dv, first + m).store(i, head.row(block, a.ds, first + m).load(i) * decays.get(m));
      });
      block.sync();
      all += block.reduce(rows, Sum(), [&](auto i) { return sums.load(i); });
      own = sums.get(rows - 1);
      block.sync();
    }
    block.row(a.dl, head.b, end - 1).set(head.h, all - own);
  }
};

}  // namespace state_values_backward
