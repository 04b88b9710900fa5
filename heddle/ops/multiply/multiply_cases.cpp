#include "heddle/ir/cases.h"
#include "heddle/ops/multiply/multiply.h"

namespace heddle::multiply {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {1, 64}, {5, 37}, {33, 300}}) {
      Multiply args{.a = input(type, {m, n}), .b = input(type, {m, n})};
      cases.push_back(make_case(args, rounding_bound(type, 1)));
      args.b = input(DType::kBf16, {m, n});
      args.y = input(DType::kF32, {m, n});
      cases.push_back(make_case(args, rounding_bound(DType::kF32, 1)));
    }
  return cases;
}

}  // namespace heddle::multiply
