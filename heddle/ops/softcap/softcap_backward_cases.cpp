#include "heddle/ir/cases.h"
#include "heddle/ops/softcap/softcap_backward.h"

namespace heddle::softcap_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
      for (float cap : {0.3f, 30.0f}) {  // values are up to 1: far above the cap, far below it
        SoftcapBackward args{.x = input(type, {m, n}), .dy = input(type, {m, n}), .cap = cap};
        cases.push_back(make_case(args, unit_bound(type, 8)));
      }
  return cases;
}

}  // namespace heddle::softcap_backward
