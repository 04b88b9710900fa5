#include "heddle/ir/cases.h"
#include "heddle/ops/rms_norm/rms_norm.h"

namespace heddle::rms_norm {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] :
         {std::pair{1, 1}, {19, 64}, {5, 37}, {33, 300}, {3, 17}, {2, 3001}, {2, 20001}, {2, 40008}}) {
      const double steps = columns > 20000 ? 64 : 4;  // one thread may add up a row
      cases.push_back(
          make_case(RmsNorm{.x = input(type, {rows, columns}), .weight = input(DType::kF32, {columns})},
                    rounding_bound(type, steps)));
    }
  return cases;
}

}  // namespace heddle::rms_norm
