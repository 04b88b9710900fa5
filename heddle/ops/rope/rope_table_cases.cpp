#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/rope/rope_table.h"

namespace heddle::rope_table {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // Short positions, and those of a context of 128 K, whose angles test the reduction by pi / 2.
  const StepExample decode{{{.start = 0, .rows = 1}}}, mixed{{{0, 5}, {700, 3}}}, far{{{131000, 64}}, 64};
  for (const StepExample& step : {decode, mixed, far})
    for (i32 pairs : {1, 24, 33}) {
      RopeTable args{.state = step.state(), .inv_freq = input(DType::kF32, {pairs})};
      args.table = input(DType::kF32, {step.rows(), 2 * pairs});
      args.scale = pairs == 24 ? 1.25f : 1;
      Case one = make_case(args, rounding_bound(DType::kF32, 4));
      one.prepare = [step, pairs](std::byte* bytes, Values& values) {
        auto& a = as<RopeTable>(bytes);
        step.fill_state(values.bytes(a.state.buffer));
        std::vector<double> inv_freq;
        for (i32 i = 0; i < pairs; ++i) inv_freq.push_back(std::pow(10000.0, -double(i) / pairs));
        values.write(a.inv_freq, inv_freq);
      };
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::rope_table
