#include "heddle/ir/cases.h"
#include "heddle/ops/softmax/softmax.h"

namespace heddle {

std::vector<Case> softmax_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] : {std::pair{1, 1}, {1, 64}, {5, 37}, {33, 300}, {2, 40008}, {1, 300008}})
      for (double spread : {1.0, 90.0}) {  // 90: weights down to the smallest that f32 holds
        Case one = make_case(Softmax{.x = input(type, {rows, columns})}, rounding_bound(type, 8));
        one.prepare = [spread](std::byte* bytes, Values& values) {
          auto x = values.read(as<Softmax>(bytes).x);
          for (double& v : x) v *= spread;
          values.write(as<Softmax>(bytes).x, x);
        };
        const bool is_long = columns > 100'000;  // for a cluster of 16
        if (is_long ? type == DType::kBf16 && spread == 1.0 : columns < 1000 || spread > 1.0)
          cases.push_back(one);
      }
  return cases;
}

}  // namespace heddle
