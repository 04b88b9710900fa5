// Tile body of gated_activation_backward. Included once per target, inside its namespace.
namespace gated_activation_backward {

#include "heddle/ops/activation/activate.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const GatedActivationBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(2 * t[2]), dx = block.row(a.dx, row).from(2 * t[2]);
      auto dy = block.row(a.dy, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        auto pair = x.load_pair(i);
        auto given = dy.load(i);
        dx.store_pair(i, given * pair.second * activation_slope(a.kind, pair.first),
                      given * activate(a.kind, pair.first));
      });
    }
  }
};

}  // namespace gated_activation_backward
