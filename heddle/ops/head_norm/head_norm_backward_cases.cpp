#include "heddle/ir/cases.h"
#include "heddle/ops/head_norm/head_norm_backward.h"

namespace heddle::head_norm_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // {head_dim, normalised heads, all columns}: all of a row, and some of it before columns that are no whole head.
  for (auto [head_dim, heads, columns] :
       {std::array{1, 1, 1}, {64, 2, 128}, {33, 4, 150}, {128, 10, 1536}, {96, 3, 304}})
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (i32 rows : {1, 19}) {
        HeadNormBackward args{.x = input(type, {rows, columns}),
                              .weight = input(DType::kF32, {heads * head_dim}),
                              .dy = input(type, {rows, columns})};
        args.head_dim = head_dim, args.heads = heads;
        args.part_rows = rows == 1 ? 16 : 7;
        // A head of one element is divided by its own size, which may be small.
        cases.push_back(make_case(args, unit_bound(type, head_dim == 1 ? 1000 : 16)));
        if (head_dim == 1) continue;  // its variance is 0
        args.centred = 1;
        cases.push_back(make_case(args, unit_bound(type, 16)));
      }
  return cases;
}

}  // namespace heddle::head_norm_backward
