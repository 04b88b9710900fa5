#include "heddle/ir/cases.h"
#include "heddle/ops/softmax/softmax_backward.h"

namespace heddle::softmax_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] : {std::pair{1, 1},
                                 {1, 64},
                                 {5, 37},
                                 {33, 300},
                                 {70, 1},
                                 {3, 3001},
                                 {2, 40008},
                                 {1, 150000},
                                 {1, 940000}}) {
      // For clusters of 16, of which the second keeps a part of the row.
      if (columns > 100'000 && type != DType::kBf16) continue;
      cases.push_back(
          make_case(SoftmaxBackward{.y = input(type, {rows, columns}), .dy = input(type, {rows, columns})},
                    unit_bound(type, columns / 4.0 + 4)));
    }
  return cases;
}

}  // namespace heddle::softmax_backward
