// Tile body of power_attention_past_backward. Included once per target, inside its namespace.
namespace power_attention_past_backward {

#include "heddle/ops/sympow/power_attention_rows.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const PowerAttentionPastBackward& a, const TileCoord& t) {
    block.inputs();
    const Head head(a.past, t);
    const ChunkTiles tiles(a.past.size[1], 0);
    const i32 begin = tiles.begin(t[1]), rows = tiles.end(t[1]) - begin, columns = a.y.size[3];
    auto gates = block.scratch(rows), inverse = block.scratch(rows), of_total = block.scratch(rows);
    head.load_gates(block, a.l, begin, rows, gates);
    row_gradients(block, a, head, begin, rows, inverse, of_total);
    block.sync();
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      head.row(block, a.dpast, begin + m)
          .store(i, head.row(block, a.dy, begin + m).load(i) *
                        (inverse.get(m) * past_factor(a.power, a.scale, gates.get(m))));
    });
    // Column E belongs to the total; the rest counts nothing.
    block.map_rows(rows, a.past.size[3] - columns, [&](i32 m, auto i) {
      using Value = decltype(gates.load(i));
      const float of = a.normalise ? of_total.get(m) * past_factor(a.power, a.scale, gates.get(m)) : 0.0f;
      head.row(block, a.dpast, begin + m)
          .from(columns)
          .store(i, where_less(Value(block.index(i)), Value(0.5f), Value(of), Value(0.0f)));
    });
  }
};

}  // namespace power_attention_past_backward
