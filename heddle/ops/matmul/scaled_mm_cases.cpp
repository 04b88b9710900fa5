#include "heddle/ops/matmul/product_examples.h"
#include "heddle/ops/matmul/scaled_mm.h"

namespace heddle::scaled_mm {
namespace {

Matrices matrix_input(DType type, i32 rows, i32 columns, bool transposed) {
  return {.data = transposed ? input(type, {columns, rows}) : input(type, {rows, columns}),
          .transposed = transposed};
}

struct Size {
  i32 m, n, k;
};
// Blocks with tails in each dimension; sums of one block and of several.
constexpr Size kSizes[] = {{1, 1, 1}, {5, 48, 96}, {70, 144, 272}, {3, 200, 128}};

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& [m, n, k] : kSizes)
    for (const auto& [left, right] : {std::pair{DType::kF8E4M3, DType::kF8E4M3},
                                      {DType::kF8E4M3, DType::kF8E5M2},
                                      {DType::kF8E5M2, DType::kF8E4M3}})
      for (int order = 0; order < 4; ++order) {
        const bool turned = order % 2 != 0;
        const i32 k_blocks = (k - 1) / kScaleBlock + 1, n_blocks = (n - 1) / kScaleBlock + 1;
        // {of all, of all}, {rows, columns}, {1 x 128, 128 x 128}, {1 x 128, 128 x 1}
        const std::array<std::array<i32, 4>, 4> kinds = {
            {{1, 1, 1, 1}, {m, 1, 1, n}, {m, k_blocks, k_blocks, n_blocks}, {m, k_blocks, k_blocks, n}}};
        for (const auto& [rows, left_groups, right_groups, columns] : kinds)
          cases.push_back(
              make_case(ScaledMm{.a = matrix_input(left, m, k, turned),
                                 .b = matrix_input(right, k, n, order / 2 == 0),
                                 .scale_a = matrix_input(DType::kF32, rows, left_groups, turned),
                                 .scale_b = matrix_input(DType::kF32, right_groups, columns, turned)},
                        product_bound(DType::kBf16, k)));
      }
  ScaledMm fast{.a = matrix_input(DType::kF8E4M3, 40, 256, false),
                .b = matrix_input(DType::kF8E4M3, 256, 32, true),
                .scale_a = matrix_input(DType::kF32, 1, 1, false),
                .scale_b = matrix_input(DType::kF32, 1, 1, false),
                .fast_sums = true};
  fast.y = input(DType::kF32, {40, 32});
  cases.push_back(make_case(fast, product_bound(DType::kBf16, 256)));
  return cases;
}

}  // namespace heddle::scaled_mm
