#include "heddle/ir/cases.h"
#include "heddle/ops/softcap/softcap.h"

namespace heddle::softcap {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
      for (float cap : {0.3f, 30.0f})  // values are up to 1: far above the cap, far below it
        cases.push_back(make_case(Softcap{.x = input(type, {m, n}), .cap = cap}, rounding_bound(type, 8)));
  return cases;
}

}  // namespace heddle::softcap
