// What steps take, measured, with the programs of a policy.
#pragma once

#include <string>
#include <vector>

#include "apps/heddle/support/engine_flags.h"
#include "heddle/ir/cost.h"

namespace heddle {

struct MeasureFlags {
  i32 position = 128, steps = 16, rounds = 5;
  i32 rows = 1;  // of a step; above 1: a chunk of a prompt, a step a call

  i32 calls() const { return rows == 1 ? steps : 1; }  // steps of a call
  i32 context() const { return position + rows + steps; }
};

struct MeasuredSteps {
  std::vector<double> ns;  // of a step, by round; the first call, which warms up, is none
  std::vector<i32> tokens;
  std::vector<float> logits;  // of the last step
};

// Loads the model. The program measured is that of options.scheduler.
MeasuredSteps measure_steps(const EngineFlags& flags, const EngineOptions& options, const MeasureFlags& how);
// What traced runs of the same kind, the fastest of them, say of tiles and messages.
CostModel measure_costs(const EngineFlags& flags, const EngineOptions& options, const MeasureFlags& how);
// Throws Error(kInternal) with the first difference: nothing that a program computes depends on its schedule.
void require_same(const std::string& policy, const MeasuredSteps& steps, const std::string& first_policy,
                  const MeasuredSteps& first);

}  // namespace heddle
