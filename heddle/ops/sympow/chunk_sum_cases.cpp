#include "heddle/ir/cases.h"
#include "heddle/ops/sympow/chunk_sum.h"

namespace heddle::chunk_sum {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (auto [batch, rows, heads, chunk] :
       {std::array{2, 5, 2, 3}, {1, 1, 1, 0}, {1, 700, 3, 0}, {2, 130, 1, 64}})
    cases.push_back(make_case(ChunkSum{.x = input(DType::kF32, {batch, rows, heads}), .chunk = chunk},
                              rounding_bound(DType::kF32, 40)));
  return cases;
}

}  // namespace heddle::chunk_sum
