// Tile body of rope_rows_backward. Included once per target, inside its namespace. Tiles have whole heads.
namespace rope_rows_backward {

#include "heddle/ops/rope/turn_row_heads.cuh"

struct Body {
  template <class Pair>
  static Pair value(const RopeRowsBackward&, Pair dy, Pair angle) {
    return {dy.first * angle.first + dy.second * angle.second,
            dy.second * angle.first - dy.first * angle.second};
  }

  template <class Block>
  static void run(Block& block, const RopeRowsBackward& a, const TileCoord& t) {
    block.inputs();
    each_head(block, a, a.dy, a.dx, t, [&](auto table, auto dy, auto dx) {
      if (!a.interleaved) return turn_halves<Body>(block, a, table, dy, dx);
      block.map(a.rotary_dim / 2, [&](auto i) {
        const auto made = value(a, dy.load_pair(i), table.load_pair(i));
        dx.store_pair(i, made.first, made.second);
      });
    });
  }
};

}  // namespace rope_rows_backward
