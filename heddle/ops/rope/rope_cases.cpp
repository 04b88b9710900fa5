#include "heddle/ir/cases.h"
#include "heddle/ops/rope/rope.h"

namespace heddle::rope {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // {batch, heads, positions, elements of a head, those that turn}
  for (auto [batch, heads, positions, dim, turned] :
       {std::array{2, 3, 5, 8, 8}, {1, 1, 1, 2, 2}, {3, 2, 19, 24, 10}, {2, 5, 3, 80, 64}})
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (const bool interleaved : {false, true})
        for (i32 angles : {batch, 1}) {
          const DType angle_type = angles == 1 ? DType::kF32 : type;
          Rope args{.q = input(type, {batch, heads, positions, dim}),
                    .cos = input(angle_type, {angles, positions, turned}),
                    .sin = input(angle_type, {angles, positions, turned}),
                    .interleaved = interleaved};
          cases.push_back(make_case(args, rounding_bound(type, 2)));
        }
  return cases;
}

}  // namespace heddle::rope
