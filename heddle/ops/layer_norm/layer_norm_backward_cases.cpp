#include "heddle/ir/cases.h"
#include "heddle/ops/layer_norm/layer_norm_backward.h"

namespace heddle::layer_norm_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] : {std::pair{1, 1},
                                 {1, 64},
                                 {5, 37},
                                 {33, 300},
                                 {70, 1},
                                 {45, 64},
                                 {50, 128},
                                 {9, 1001},
                                 {5, 8200},
                                 {3, 11045}})
      for (i32 part_rows : {16, 3}) {
        LayerNormBackward args{.x = input(type, {rows, columns}),
                               .weight = input(DType::kF32, {columns}),
                               .dy = input(type, {rows, columns})};
        args.part_rows = part_rows;
        if (part_rows == 3) args.dsum = input(type, {rows, columns});
        // The gradient of one column is 0: what is left of a difference of values of the size 1 / sqrt(eps).
        cases.push_back(make_case(args, unit_bound(type, columns == 1 ? 1000 : 16)));
      }
  return cases;
}

}  // namespace heddle::layer_norm_backward
