#include "heddle/ir/cases.h"
#include "heddle/ops/quantize/quantize_both.h"

namespace heddle::quantize_both {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (i32 code = 0; code < kNumCodeKinds; ++code)
      for (auto [rows, columns] : {std::pair{4, 4}, {21, 67}, {132, 300}, {144, 136}, {260, 128}}) {
        const QuantizeBoth args{.x = input(type, {rows, columns}), .code = code};
        cases.push_back(make_case(args, code == kCodeI8 ? 1 : code == kCodeE4M3 ? 0.125 : 0.25));
      }
  return cases;
}

}  // namespace heddle::quantize_both
