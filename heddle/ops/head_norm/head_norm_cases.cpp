#include "heddle/ir/cases.h"
#include "heddle/ops/head_norm/head_norm.h"

namespace heddle::head_norm {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // {head_dim, normalised heads, all columns}: all of a row, some of it, and some with columns after them that are no whole head.
  for (auto [head_dim, heads, columns] :
       {std::array{1, 1, 1}, {64, 3, 192}, {24, 2, 96}, {33, 4, 150}, {128, 10, 1536}, {96, 3, 304}})
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (i32 rows : {1, 19}) {
        HeadNorm args{.x = input(type, {rows, columns}), .weight = input(DType::kF32, {heads * head_dim})};
        args.head_dim = head_dim, args.heads = heads;
        cases.push_back(make_case(args, rounding_bound(type, 4)));
        if (head_dim < 24) continue;  // the variance of so few is nearly 0 at times
        args.centred = 1;
        cases.push_back(make_case(args, rounding_bound(type, 8)));
      }
  return cases;
}

}  // namespace heddle::head_norm
