// Cases of ops that keep something of each sequence from step to step.
#pragma once

#include <vector>

#include "heddle/ir/cases.h"

namespace heddle {

// A decode row, a prompt, and three sequences that have their rows in one step.
inline std::vector<StepExample> recurrent_steps() {
  return {{{{.start = 6, .rows = 1}}}, {{{.start = 0, .rows = 21}}}, {{{0, 2}, {17, 1}, {3, 7}}}};
}

template <class Args>
Case recurrent_case(const Args& args, const StepExample& step, double bound) {
  Case one = make_case(args, bound);
  one.prepare = [step](std::byte* bytes, Values& values) {
    auto& a = as<Args>(bytes);
    step.fill_host(values.bytes(a.step.buffer));
    step.fill_state(values.bytes(a.state.buffer));
  };
  return one;
}

}  // namespace heddle
