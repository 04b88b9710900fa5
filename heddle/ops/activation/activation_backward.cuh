// Tile body of activation_backward. Included once per target, inside its namespace.
namespace activation_backward {

#include "heddle/ops/activation/activate.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const ActivationBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]), dy = block.row(a.dy, row).from(t[2]);
      auto dx = block.row(a.dx, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { dx.store(i, dy.load(i) * activation_slope(a.kind, x.load(i))); });
    }
  }
};

}  // namespace activation_backward
