#include "heddle/ir/cases.h"
#include "heddle/ops/reduce/reduce.h"

namespace heddle::reduce {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (i32 kind = 0; kind < kNumReduceKinds; ++kind)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (auto [rows, columns] : {std::pair{1, 1}, {19, 64}, {5, 37}, {33, 300}, {2, 5000}}) {
        Reduce args{.x = input(type, {rows, columns}), .kind = kind};
        // A sum of n values in [-1, 1] rounds at most n times, each time at most by half a unit of its size.
        const double steps = kind == kReduceMax ? 0 : columns / 4.0;
        cases.push_back(make_case(args, rounding_bound(DType::kF32, steps)));
        args.y = input(type, {rows});
        cases.push_back(make_case(args, rounding_bound(type, steps)));
        if (columns != 37 && columns != 300) continue;
        for (args.variant = kReduceImproved; args.variant < kNumReduceVariants; ++args.variant)
          cases.push_back(make_case(args, rounding_bound(type, steps)));
      }
  return cases;
}

}  // namespace heddle::reduce
