#include "heddle/ir/cases.h"
#include "heddle/ops/sympow/state_scan_gates.h"

namespace heddle::state_scan_gates {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (auto [batch, rows, heads, chunk, parts] :
       {std::array{2, 5, 2, 3, 4}, {1, 1, 1, 0, 1}, {1, 130, 3, 32, 36}}) {
    StateScanGates a{.l = input(DType::kF32, {batch, rows, heads}), .chunk = chunk};
    a.part = input(DType::kF32, {batch, heads, a.tiles().chunks(), parts});
    cases.push_back(make_case(a, rounding_bound(DType::kF32, 8 + parts)));
  }
  return cases;
}

}  // namespace heddle::state_scan_gates
