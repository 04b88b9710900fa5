// Tile body of linear_backward_input. Included once per target, inside its namespace.
namespace linear_backward_input {

#include "heddle/ops/linear/sum_of_products.cuh"

struct DefaultConfig {
  static constexpr i32 kRows = 64, kColumns = 64;  // a tile
  static constexpr i32 kChunk = 64;                // terms that are on chip at a time
};

template <class Config>
struct BodyWith {
  template <class Block>
  static void run(Block& block, const LinearBackwardInput& a, const TileCoord& t) {
    block.inputs();
    sum_of_products<Config::kChunk>(
        block, a.dx, t, a.w.dtype, a.w.size[0], [&](const auto& product, i32 n, i32 count) {
          for (i32 m = t[0]; m < t[1]; ++m) {
            auto dy = block.row(a.dy, m).from(n);
            auto left = product.left_row(m - t[0]);
            block.map(count, [&](auto i) { left.store(i, dy.load(i)); });
          }
          block.set_right_columns(product, 0,
                                  Lines{block.row(a.w, n).from(t[2]), a.w.stride[0], count, t[3] - t[2]});
        });
  }
};
using Body = BodyWith<DefaultConfig>;

}  // namespace linear_backward_input
