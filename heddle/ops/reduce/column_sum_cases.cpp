#include "heddle/ir/cases.h"
#include "heddle/ops/reduce/column_sum.h"

namespace heddle::column_sum {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] :
         {std::pair{1, 1}, {1, 64}, {64, 1}, {37, 5}, {300, 33}, {3, 1100}, {1847, 72}}) {
      ColumnSum args{.x = input(type, {rows, columns})};
      cases.push_back(make_case(args, rounding_bound(DType::kF32, rows / 4.0)));
      args.y = input(type, {columns});
      cases.push_back(make_case(args, unit_bound(type, rows / 4.0)));
    }
  return cases;
}

}  // namespace heddle::column_sum
