#include "heddle/ir/cases.h"
#include "heddle/ops/add/add_backward.h"

namespace heddle::add_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {1, 64}, {5, 37}, {33, 300}}) {
      AddBackward args{.dy = input(type, {m, n})};
      cases.push_back(make_case(args, rounding_bound(type, 1)));
      args.dcopy = input(DType::kBf16, {m, n});
      cases.push_back(make_case(args, unit_bound(type, 1)));
    }
  return cases;
}

}  // namespace heddle::add_backward
