#include <array>

#include "heddle/ir/cases.h"
#include "heddle/ops/reduce/reduce_dim_backward.h"

namespace heddle {

std::vector<Case> reduce_dim_backward_cases() {
  std::vector<Case> cases;
  constexpr std::array<i32, 3> kShapes[] = {{1, 1, 1}, {3, 37, 1},  {2, 64, 8},   {70, 6, 4},
                                            {5, 7, 3}, {3, 9, 264}, {2, 5, 1000}, {1, 40000, 3}};
  for (i32 kind = 0; kind < kNumReduceKinds; ++kind)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (const auto& [groups, rows, columns] : kShapes) {
        ReduceDimBackward args{
            .x = input(type, {groups, rows, columns}), .dy = input(type, {groups, columns}), .kind = kind};
        cases.push_back(make_case(args, rounding_bound(type, 2)));
      }
  return cases;
}

}  // namespace heddle
