#include "heddle/ir/cases.h"
#include "heddle/ops/quantize/quantize.h"

namespace heddle::quantize {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (i32 code = 0; code < kNumCodeKinds; ++code)
      for (i32 by = 0; by < kNumScaleKinds; ++by)
        for (auto [rows, columns] : {std::pair{1, 4}, {5, 67}, {17, 300}, {19, 64}, {3, 1024}}) {
          const Quantize args{.x = input(type, {rows, columns}), .code = code, .by = by};
          // A value at a border may be rounded to either code next to it.
          cases.push_back(make_case(args, code == kCodeI8 ? 1 : code == kCodeE4M3 ? 0.125 : 0.25));
        }
  return cases;
}

}  // namespace heddle::quantize
