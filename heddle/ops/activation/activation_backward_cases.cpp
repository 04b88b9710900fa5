#include "heddle/ir/cases.h"
#include "heddle/ops/activation/activation_backward.h"

namespace heddle::activation_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (i32 kind = 0; kind < kNumActivations; ++kind)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (auto [m, n] : {std::pair{1, 1}, {1, 70}, {5, 37}, {33, 300}, {70, 1}}) {
        ActivationBackward args{.x = input(type, {m, n}), .dy = input(type, {m, n}), .kind = kind};
        cases.push_back(make_case(args, unit_bound(type, 16)));
      }
  return cases;
}

}  // namespace heddle::activation_backward
