#include "heddle/ir/cases.h"
#include "heddle/ops/rope/rope_rows_backward.h"

namespace heddle::rope_rows_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // {head_dim, rotary_dim, rotated heads, all columns}: whole heads, a part of each, and further columns after the heads.
  for (auto [head_dim, rotary_dim, heads, columns] :
       {std::array{2, 2, 1, 2}, {64, 64, 3, 256}, {24, 10, 2, 100}, {80, 32, 4, 320}})
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (i32 interleaved : {0, 1})
        for (i32 rows : {1, 19}) {
          RopeRowsBackward args{.dy = input(type, {rows, columns}),
                                .table = input(DType::kF32, {rows, rotary_dim})};
          args.head_dim = head_dim, args.rotary_dim = rotary_dim, args.heads = heads;
          args.interleaved = interleaved;
          cases.push_back(make_case(args, unit_bound(type, 2)));
        }
  return cases;
}

}  // namespace heddle::rope_rows_backward
