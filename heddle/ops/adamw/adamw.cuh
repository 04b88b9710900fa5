// Tile body of adamw. Included once per target, inside its namespace.
namespace adamw {

#include "heddle/tile/adamw_factors.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const Adamw& a, const TileCoord& t) {
    block.inputs();
    const Factors factors(a);
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto at = [&](const Tensor& tensor) { return block.row(tensor, row).from(t[2]); };
      auto param = at(a.param), grad = at(a.grad), m = at(a.m), v = at(a.v);
      auto new_param = at(a.new_param), new_m = at(a.new_m), new_v = at(a.new_v);
      block.map(t[3] - t[2], [&](auto i) {
        auto g = grad.load(i) * factors.grad_scale;
        auto mean = factors.mean(m.load(i), g), square = factors.square(v.load(i), g);
        auto p = factors.param(param.load(i), mean, square);
        new_m.store(i, mean);
        new_v.store(i, square);
        new_param.store(i, p);
      });
    }
  }
};

}  // namespace adamw
