#include "heddle/ir/cases.h"
#include "heddle/ops/quantize/quantize_at.h"

namespace heddle::quantize_at {

std::vector<Case> cases() {
  std::vector<Case> cases;
  const auto blocks = [](i32 size) { return (size - 1) / kCodeBlock + 1; };
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (i32 code = 0; code < kNumCodeKinds; ++code)
      for (auto [rows, columns] : {std::pair{4, 4}, {21, 67}, {144, 136}, {132, 300}}) {
        // {of x, of x transposed}
        const std::array<std::array<i32, 2>, 3> high = {
            {{1, 1}, {rows, columns}, {blocks(rows), blocks(columns)}}};
        for (size_t by = 0; by < high.size(); ++by) {
          const bool is_square = by == 2;
          const QuantizeAt args{
              .x = input(type, {rows, columns}),
              .scales = input(DType::kF32, {high[by][0], is_square ? blocks(columns) : 1}),
              .transposed_scales = input(DType::kF32, {high[by][1], is_square ? blocks(rows) : 1}),
              .code = code};
          cases.push_back(make_case(args, code == kCodeI8 ? 1 : code == kCodeE4M3 ? 0.125 : 0.25));
        }
      }
  return cases;
}

}  // namespace heddle::quantize_at
