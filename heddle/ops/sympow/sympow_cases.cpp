#include "heddle/ir/cases.h"
#include "heddle/ops/sympow/sympow.h"

namespace heddle::sympow {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns, power] :
         {std::array{1, 8, 2}, {5, 8, 2}, {33, 24, 2}, {70, 64, 2}, {1, 8, 4}, {3, 24, 4}})
      cases.push_back(
          make_case(Sympow{.x = input(type, {rows, columns}), .power = power}, unit_bound(type, 8)));
  return cases;
}

}  // namespace heddle::sympow
