#include "heddle/ir/cases.h"
#include "heddle/ops/sympow/sympow_backward.h"

namespace heddle::sympow_backward {

// Sums of products of random signs.
std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns, power] :
         {std::array{1, 8, 2}, {5, 8, 2}, {33, 24, 2}, {70, 64, 2}, {3, 16, 4}}) {
      const i32 width = i32(sympow_width(power, columns));
      cases.push_back(make_case(
          SympowBackward{.x = input(type, {rows, columns}), .dy = input(type, {rows, width}), .power = power},
          unit_bound(type, width / 4.0)));
    }
  return cases;
}

}  // namespace heddle::sympow_backward
