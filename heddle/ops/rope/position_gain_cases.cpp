#include "heddle/ir/cases.h"
#include "heddle/ops/rope/position_gain.h"

namespace heddle::position_gain {

std::vector<Case> cases() {
  std::vector<Case> cases;
  const StepExample decode{{{.start = 0, .rows = 1}}}, mixed{{{0, 5}, {700, 3}}}, far{{{131000, 64}}, 64};
  for (const StepExample& step : {decode, mixed, far})
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (i32 columns : {1, 48}) {
        PositionGain args{.state = step.state(), .x = input(type, {step.rows(), columns})};
        args.gains = input(DType::kF32, {3}), args.period = 300;
        Case one = make_case(args, rounding_bound(type, 2));
        one.prepare = [step](std::byte* bytes, Values& values) {
          step.fill_state(values.bytes(as<PositionGain>(bytes).state.buffer));
        };
        cases.push_back(one);
      }
  return cases;
}

}  // namespace heddle::position_gain
