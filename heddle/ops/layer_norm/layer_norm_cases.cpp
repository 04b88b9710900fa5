#include "heddle/ir/cases.h"
#include "heddle/ops/layer_norm/layer_norm.h"

namespace heddle::layer_norm {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] : {std::pair{1, 2},
                                 {19, 64},
                                 {5, 37},
                                 {33, 300},
                                 {2, 40008},
                                 {2, 1600},
                                 {1, 2056},
                                 {3, 8000},
                                 {2, 4101},
                                 {2, 20001},
                                 {2, 16000}}) {
      // References are rounded too, and of so many elements of 16 bits some lie near a border.
      const bool near = columns > 20000 && type != DType::kF32;
      const double bound = near ? unit_bound(type, 16) : rounding_bound(type, 16);
      LayerNorm args{.x = input(type, {rows, columns}), .weight = input(DType::kF32, {columns})};
      cases.push_back(make_case(args, bound));
      args.bias = input(DType::kF32, {columns});
      cases.push_back(make_case(args, bound));
    }
  return cases;
}

}  // namespace heddle::layer_norm
