#include <algorithm>
#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/sympow/sympow_mma_backward.h"

namespace heddle::sympow_mma_backward {

// An element is the sum of about 2 width columns / dim products of random signs.
std::vector<Case> cases() {
  struct Shape {
    i32 batch, rows, heads, dim, columns, chunk, power;
  };
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const auto& [batch, rows, heads, dim, columns, chunk, power] : {Shape{1, 1, 1, 8, 1, 0, 2},
                                                                         {2, 5, 2, 8, 9, 3, 2},
                                                                         {1, 100, 2, 24, 16, 67, 2},
                                                                         {1, 65, 1, 64, 24, 0, 2},
                                                                         {1, 9, 2, 16, 8, 4, 4},
                                                                         {1, 3, 1, 24, 8, 0, 4}}) {
      SympowMmaBackward a{.x = input(type, {batch, rows, heads, dim}),
                          .dy = input(type, {batch, rows, heads, columns}),
                          .power = power,
                          .chunk = chunk};
      a.s = input(type, {batch, heads, a.tiles().chunks() * a.width(), columns});
      const double terms = std::max(1.0, std::sqrt(2.0 * a.width() * columns / dim) / 2);
      const double steps = double(a.width()) * columns / dim;
      cases.push_back(make_case(
          a, type == DType::kF32 ? rounding_bound(type, steps) : rounding_bound(DType::kBf16, 8) * terms));
    }
  return cases;
}

}  // namespace heddle::sympow_mma_backward
