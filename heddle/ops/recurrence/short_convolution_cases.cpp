#include "heddle/ops/recurrence/short_convolution.h"
#include "heddle/ops/recurrence/step_cases.h"

namespace heddle::short_convolution {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const StepExample& step : recurrent_steps())
      for (auto [columns, width] : {std::pair{1, 2}, {40, 3}, {600, 4}}) {
        const bool more = columns == 40;
        ShortConvolution args{.step = step.host(), .state = step.state()};
        args.x = input(type, {step.rows(), columns});
        args.weight = input(DType::kF32, {width, columns});
        if (more) args.bias = input(DType::kF32, {columns});
        args.memory = input(more ? type : DType::kF32, {step.slots(), width, columns});
        args.sequences = i32(step.sequences.size()) + (more ? 1 : 0);
        args.activation = more ? 0 : 1;
        cases.push_back(recurrent_case(args, step, rounding_bound(type, 16)));
      }
  return cases;
}

}  // namespace heddle::short_convolution
