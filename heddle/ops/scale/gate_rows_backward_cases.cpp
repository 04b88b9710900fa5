#include "heddle/ir/cases.h"
#include "heddle/ops/scale/gate_rows_backward.h"

namespace heddle::gate_rows_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
      cases.push_back(make_case(
          GateRowsBackward{.x = input(type, {m, n}), .gate = input(type, {m, 1}), .dy = input(type, {m, n})},
          unit_bound(type, 16)));
  return cases;
}

}  // namespace heddle::gate_rows_backward
