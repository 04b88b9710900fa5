// Measures the time of steps with the programs of a policy.
#pragma once

#include <string>
#include <vector>

#include "apps/heddle/support/engine_flags.h"
#include "heddle/ir/program/cost.h"

namespace heddle {

struct MeasureFlags {
  i32 position = 128, steps = 16, rounds = 5;
  i32 rows = 1;  // rows per step; above 1: a chunk of a prompt, one step per call

  i32 calls() const { return rows == 1 ? steps : 1; }  // steps per call
  i32 context() const { return position + rows + steps; }
};

struct MeasuredSteps {
  std::vector<double> ns;  // per step, by round; without the first call, which warms up
  std::vector<i32> tokens;
  std::vector<float> logits;  // logits of the last step
};

// Loads the model and measures the program of options.scheduler.
MeasuredSteps measure_steps(const EngineFlags& flags, const EngineOptions& options, const MeasureFlags& how);
// Derives costs of tiles and messages from the fastest of several traced runs.
CostModel measure_costs(const EngineFlags& flags, const EngineOptions& options, const MeasureFlags& how);
// Throws Error(kInternal) with the first difference: a schedule must not change anything that a program
// computes.
void require_same(const std::string& policy, const MeasuredSteps& steps, const std::string& first_policy,
                  const MeasuredSteps& first);

}  // namespace heddle
