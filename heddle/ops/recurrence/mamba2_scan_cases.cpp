#include "heddle/ops/recurrence/mamba2_scan.h"
#include "heddle/ops/recurrence/step_cases.h"

namespace heddle::mamba2_scan {

std::vector<Case> cases() {
  std::vector<Case> cases;
  struct Heads {
    i32 groups, heads, head_dim, state_dim;
  };
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const StepExample& step : recurrent_steps())
      for (const auto& [groups, heads, head_dim, state_dim] :
           {Heads{1, 1, 1, 1}, {2, 6, 40, 24}, {1, 2, 64, 128}}) {
        Mamba2Scan args{.step = step.host(), .state = step.state()};
        args.x = input(type, {step.rows(), heads * head_dim + 2 * groups * state_dim});
        args.dt = input(type, {step.rows(), heads});
        args.rate = args.bias = args.skip = input(DType::kF32, {heads});
        args.memory = input(DType::kF32, {2 * step.slots(), heads, head_dim, state_dim});
        args.groups = groups, args.sequences = i32(step.sequences.size()) + (groups == 2 ? 1 : 0);
        if (groups == 2) args.least = 0.5f, args.most = 0.9f;
        cases.push_back(recurrent_case(args, step, rounding_bound(type, 64)));
      }
  return cases;
}

}  // namespace heddle::mamba2_scan
