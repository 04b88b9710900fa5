#include <array>

#include "heddle/ir/cases.h"
#include "heddle/ops/reduce/reduce_dim.h"

namespace heddle::reduce_dim {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // Lines of few columns, columns of words, and both in single elements; long ones are added up in parts, with gaps between rows
  // by columns. The last are short lines, of several CTAs.
  constexpr std::array<i32, 3> kShapes[] = {
      {1, 1, 1},    {3, 37, 1},    {2, 64, 8},   {70, 6, 4},   {5, 20, 24},  {2, 16, 512},
      {3, 9, 264},  {2, 300, 40},  {2, 5, 1000}, {1, 700, 40}, {1, 600, 41}, {1, 40000, 3},
      {2, 7, 2053}, {1, 20000, 8}, {300, 77, 1}, {2100, 8, 1}, {70, 3, 136}};
  for (i32 kind = 0; kind < kNumReduceKinds; ++kind)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (const auto& [groups, rows, columns] : kShapes) {
        ReduceDim args{.x = input(type, {groups, rows, columns}), .kind = kind, .result = kResultF32};
        // A sum of n values in [-1, 1] rounds at most n times, each time at most by half a unit of its size.
        const double steps = kind == kReduceMax ? 0 : rows / 4.0;
        cases.push_back(make_case(args, rounding_bound(DType::kF32, steps)));
        if (type == DType::kF32) continue;
        args.result = kResultAsInput;
        cases.push_back(make_case(args, rounding_bound(type, steps)));
      }
  // So wide that a CTA goes down few columns and nothing is added up.
  const ReduceDim wide{.x = input(DType::kBf16, {1, 1030, 2053}), .result = kResultF32};
  cases.push_back(make_case(wide, rounding_bound(DType::kF32, 1030 / 4.0)));
  // Here a cluster has the rows.
  const ReduceDim high{.x = input(DType::kBf16, {1, 4101, 2056}), .result = kResultF32};
  cases.push_back(make_case(high, rounding_bound(DType::kF32, 4101 / 4.0)));
  return cases;
}

}  // namespace heddle::reduce_dim
