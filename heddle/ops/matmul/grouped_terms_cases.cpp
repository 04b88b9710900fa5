#include "heddle/ops/matmul/grouped_examples.h"
#include "heddle/ops/matmul/grouped_terms.h"
#include "heddle/ops/matmul/product_examples.h"

namespace heddle::grouped_terms {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& [m, n, k, unit, ends] : grouped_examples(true))
    for (int order = 0; order < 4; ++order)
      for (DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
        GroupedTerms args{.ends = input(DType::kI32, {i32(ends.size())}), .unit = unit};
        args.a.transposed = order % 2 != 0, args.b.transposed = order / 2 != 0;
        args.a.data = args.a.transposed ? input(type, {k, m}) : input(type, {m, k});
        args.b.data = args.b.transposed ? input(type, {n, k}) : input(type, {k, n});
        cases.push_back(grouped_case(args, product_bound(type, k), ends));
      }
  return cases;
}

}  // namespace heddle::grouped_terms
