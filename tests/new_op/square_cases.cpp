#include "heddle/ir/cases.h"
#include "heddle/ops/square/square.h"

namespace heddle::square {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
      cases.push_back(make_case(Square{.x = input(dtype, {m, n})}, rounding_bound(dtype, 1)));
  return cases;
}

}  // namespace heddle::square
