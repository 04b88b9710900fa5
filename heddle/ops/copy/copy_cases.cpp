#include "heddle/ir/cases.h"
#include "heddle/ops/copy/copy.h"

namespace heddle::copy {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType from : {DType::kF32, DType::kBf16, DType::kF16})
    for (DType to : {DType::kF32, DType::kBf16, DType::kF16})
      for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
        cases.push_back(
            make_case(Copy{.x = input(from, {m, n}), .y = input(to, {m, n})}, rounding_bound(to, 0)));
  cases.push_back(make_case(Copy{.x = input(DType::kI32, {3, 19})}, 0));
  return cases;
}

}  // namespace heddle::copy
