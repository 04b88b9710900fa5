#include "heddle/ir/cases.h"
#include "heddle/ops/layer_norm/layer_norm_residual.h"

namespace heddle::layer_norm_residual {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] :
         {std::pair{1, 2}, {1, 64}, {5, 37}, {33, 300}, {2, 1600}, {3, 2056}, {3, 3001}, {2, 40008}}) {
      LayerNormResidual args{.x = input(type, {rows, columns}),
                             .residual = input(type, {rows, columns}),
                             .weight = input(DType::kF32, {columns})};
      cases.push_back(make_case(args, rounding_bound(type, 16)));
      args.bias = input(DType::kF32, {columns});
      cases.push_back(make_case(args, unit_bound(type, 16)));
    }
  return cases;
}

}  // namespace heddle::layer_norm_residual
