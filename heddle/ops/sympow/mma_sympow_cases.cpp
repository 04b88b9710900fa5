#include <algorithm>
#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/sympow/mma_sympow.h"

namespace heddle::mma_sympow {

// Sums over a chunk of products of random signs. Narrow types: a device multiplies rounded columns of phi. Those of power 4 weigh up to
// the square root of 24 in place of 2, and are rounded three times as often: 6 times as much of both.
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
                                                                         {1, 64, 1, 16, 130, 32, 2},
                                                                         {1, 9, 2, 16, 8, 4, 4},
                                                                         {1, 70, 1, 16, 24, 64, 4},
                                                                         {1, 3, 1, 24, 8, 0, 4}}) {
      const MmaSympow a{.x = input(type, {batch, rows, heads, dim}),
                        .v = input(type, {batch, rows, heads, columns}),
                        .power = power,
                        .chunk = chunk};
      const double terms = std::max(1.0, std::sqrt(double(a.tiles().chunk)) / 2) * (power == 4 ? 6 : 1);
      cases.push_back(make_case(
          a, type == DType::kF32 ? rounding_bound(type, 8 + rows) : rounding_bound(DType::kBf16, 8) * terms));
    }
  return cases;
}

}  // namespace heddle::mma_sympow
