// Tile body of linear_backward_weight. Included once per target, inside its namespace.
namespace linear_backward_weight {

#include "heddle/ops/linear/sum_of_products.cuh"

struct DefaultConfig {
  static constexpr i32 kRows = 64, kColumns = 64;  // a tile
  static constexpr i32 kChunk = 64;                // terms that are on chip at a time
};

template <class Config>
struct BodyWith {
  template <class Block>
  static void run(Block& block, const LinearBackwardWeight& a, const TileCoord& t) {
    block.inputs();
    sum_of_products<Config::kChunk>(
        block, a.dw, t, a.x.dtype, a.x.size[0], [&](const auto& product, i32 m, i32 count) {
          for (i32 n = t[0]; n < t[1]; ++n) {
            auto dy = block.row(a.dy, m).from(n).every(a.dy.stride[0]);
            auto left = product.left_row(n - t[0]);
            block.map(count, [&](auto i) { left.store(i, dy.load(i)); });
          }
          block.set_right_columns(product, 0,
                                  Lines{block.row(a.x, m).from(t[2]), a.x.stride[0], count, t[3] - t[2]});
        });
  }
};
using Body = BodyWith<DefaultConfig>;

}  // namespace linear_backward_weight
