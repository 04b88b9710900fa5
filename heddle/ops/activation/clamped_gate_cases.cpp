#include "heddle/ir/cases.h"
#include "heddle/ops/activation/clamped_gate.h"

namespace heddle::clamped_gate {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 150}})
      for (float limit : {0.5f, 7.0f})  // values are up to 1: some are clamped, none is
        cases.push_back(
            make_case(ClampedGate{.x = input(type, {m, 2 * n}), .limit = limit}, rounding_bound(type, 8)));
  return cases;
}

}  // namespace heddle::clamped_gate
