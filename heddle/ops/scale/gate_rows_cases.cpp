#include "heddle/ir/cases.h"
#include "heddle/ops/scale/gate_rows.h"

namespace heddle::gate_rows {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
      cases.push_back(make_case(GateRows{.x = input(type, {m, n}), .gate = input(type, {m, 1})},
                                rounding_bound(type, 6)));
  return cases;
}

}  // namespace heddle::gate_rows
