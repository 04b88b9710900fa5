#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/argmax/argmax.h"

namespace heddle::argmax {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] : {std::pair{1, 1}, {1, 64}, {5, 37}, {33, 300}}) {
      const Argmax args{.x = input(type, {rows, columns})};
      cases.push_back(make_case(args, 0));
      // Few values, so that the largest stands in several places.
      Case ties = make_case(args, 0);
      ties.prepare = [](std::byte* bytes, Values& values) {
        auto x = values.read(as<Argmax>(bytes).x);
        for (double& v : x) v = std::round(2 * v);
        values.write(as<Argmax>(bytes).x, x);
      };
      cases.push_back(ties);
    }
  return cases;
}

}  // namespace heddle::argmax
