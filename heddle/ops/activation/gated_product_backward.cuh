// Tile body of gated_product_backward. Included once per target, inside its namespace.
namespace gated_product_backward {

#include "heddle/ops/activation/activate.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const GatedProductBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto gate = block.row(a.gate, row).from(t[2]), up = block.row(a.up, row).from(t[2]);
      auto dy = block.row(a.dy, row).from(t[2]);
      auto dgate = block.row(a.dgate, row).from(t[2]), dup = block.row(a.dup, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        auto x = gate.load(i), other = up.load(i), given = dy.load(i);
        dgate.store(i, given * other * activation_slope(a.kind, x));
        dup.store(i, given * activate(a.kind, x));
      });
    }
  }
};

}  // namespace gated_product_backward
