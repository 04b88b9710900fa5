#include "heddle/ir/cases.h"
#include "heddle/ops/transpose/transpose.h"

namespace heddle::transpose {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (auto [m, n] : {std::pair{1, 1}, {1, 70}, {70, 1}, {5, 37}, {130, 67}, {72, 136}}) {
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16, DType::kI32})
      cases.push_back(make_case(Transpose{.x = input(type, {m, n})}, 0));  // moved, never rounded
    cases.push_back(make_case(Transpose{.x = input(DType::kF32, {m, n}), .y = input(DType::kBf16, {n, m})},
                              rounding_bound(DType::kBf16, 0)));
  }
  cases.push_back(make_case(Transpose{.x = input(DType::kF32, {130, 67}), .tile_size = 16}, 0));
  return cases;
}

}  // namespace heddle::transpose
