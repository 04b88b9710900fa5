#include "heddle/ops/matmul/grouped_examples.h"
#include "heddle/ops/matmul/grouped_matmul.h"
#include "heddle/ops/matmul/product_examples.h"

namespace heddle::grouped_matmul {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& [m, n, k, unit, ends] : grouped_examples(false))
    for (int order = 0; order < 4; ++order)
      for (DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
        const bool a_turned = order % 2 != 0, b_turned = order / 2 != 0;
        const auto groups = i32(ends.size());
        GroupedMatmul args{.b = {.data = b_turned ? input(type, {groups, n, k}) : input(type, {groups, k, n}),
                                 .transposed = b_turned},
                           .ends = input(DType::kI32, {groups}),
                           .unit = unit};
        args.a.data = a_turned ? input(type, {k, m}) : input(type, {m, k});
        args.a.transposed = a_turned;
        cases.push_back(grouped_case(args, product_bound(type, k), ends));
      }
  return cases;
}

}  // namespace heddle::grouped_matmul
