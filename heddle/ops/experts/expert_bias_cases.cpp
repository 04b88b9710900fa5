#include <array>

#include "heddle/ir/cases.h"
#include "heddle/ops/experts/expert_bias.h"

namespace heddle::expert_bias {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [live, taken, columns] : {std::array{1, 1, 1}, {1, 4, 64}, {5, 3, 37}, {33, 2, 600}}) {
      constexpr i32 kExperts = 7;
      const StepExample step{{{.start = 4, .rows = live}}};
      const i32 rows = step.rows() + 1;  // the last one is not live
      ExpertBias args{.step = step.host(), .choice = input(DType::kI32, {rows, taken})};
      args.x = input(type, {rows * taken, columns});
      args.bias = input(DType::kF32, {kExperts * columns});
      args.y = input(type, {rows * taken, columns});
      Case one = make_case(args, rounding_bound(type, 1));
      one.prepare = [step](std::byte* bytes, Values& values) {
        const auto& a = as<ExpertBias>(bytes);
        step.fill_host(values.bytes(a.step.buffer));
        auto choice = values.read(a.choice);
        for (size_t i = 0; i < choice.size(); ++i) choice[i] = double(i * 5 % kExperts);
        values.write(a.choice, choice);
      };
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::expert_bias
