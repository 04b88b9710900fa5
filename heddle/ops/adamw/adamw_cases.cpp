#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/adamw/adamw.h"

namespace heddle::adamw {
namespace {

// Means of squares are not negative.
void prepare(std::byte* bytes, Values& values) {
  const auto& a = as<Adamw>(bytes);
  auto v = values.read(a.v);
  for (double& value : v) value = std::abs(value);
  values.write(a.v, v);
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (DType state : {DType::kF32, type})
      for (auto [rows, columns] : {std::pair{1, 1}, {1, 64}, {5, 37}, {33, 300}})
        for (i32 step : {1, 7, 100000}) {
          Adamw args{.param = input(type, {rows, columns}),
                     .grad = input(type, {rows, columns}),
                     .m = input(state, {rows, columns}),
                     .v = input(state, {rows, columns})};
          args.step = step, args.grad_scale = step == 7 ? 0.5f : 1;
          Case one = make_case(args, unit_bound(type, 16));
          one.prepare = prepare;
          cases.push_back(one);
        }
  return cases;
}

}  // namespace heddle::adamw
