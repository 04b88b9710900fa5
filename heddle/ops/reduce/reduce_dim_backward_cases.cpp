#include <array>
#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/reduce/reduce_dim_backward.h"

namespace heddle::reduce_dim_backward {
namespace {

// Many elements are the largest of their column; one column has NaN.
void give_ties(std::byte* bytes, Values& values) {
  const Tensor& tensor = as<ReduceDimBackward>(bytes).x;
  auto x = values.read(tensor);
  for (double& value : x) value = std::round(2 * value);
  if (tensor.size[0] > 1) x.back() = NAN;
  values.write(tensor, x);
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  constexpr std::array<i32, 3> kShapes[] = {{1, 1, 1},    {3, 37, 1},   {2, 64, 8},     {70, 6, 4},
                                            {5, 7, 3},    {3, 9, 264},  {2, 5, 1000},   {1, 40000, 3},
                                            {1, 700, 40}, {1, 600, 41}, {1, 1100, 264}, {1, 20000, 8}};
  for (i32 kind = 0; kind < kNumReduceKinds; ++kind)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (const auto& [groups, rows, columns] : kShapes) {
        ReduceDimBackward args{
            .x = input(type, {groups, rows, columns}), .dy = input(type, {groups, columns}), .kind = kind};
        cases.push_back(make_case(args, rounding_bound(type, 2)));
        if (kind == kReduceMax) cases.back().prepare = give_ties;
      }
  return cases;
}

}  // namespace heddle::reduce_dim_backward
