#include "heddle/ops/recurrence/delta_rule.h"
#include "heddle/ops/recurrence/step_cases.h"

namespace heddle::delta_rule {

std::vector<Case> cases() {
  std::vector<Case> cases;
  struct Heads {
    i32 keys, values, key_dim, value_dim;
  };
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const StepExample& step : recurrent_steps())
      for (const auto& [keys, heads, key_dim, value_dim] :
           {Heads{1, 1, 1, 1}, {2, 4, 24, 40}, {1, 2, 128, 64}}) {
        DeltaRule args{.step = step.host(), .state = step.state()};
        args.x = input(type, {step.rows(), 2 * keys * key_dim + heads * value_dim});
        args.gates = input(type, {step.rows(), 2 * heads});
        args.rate = args.bias = input(DType::kF32, {heads});
        args.memory = input(DType::kF32, {2 * step.slots(), heads, value_dim, key_dim});
        args.key_heads = keys, args.sequences = i32(step.sequences.size()) + (keys == 2 ? 1 : 0);
        cases.push_back(recurrent_case(args, step, rounding_bound(type, 64)));
      }
  return cases;
}

}  // namespace heddle::delta_rule
