// The parts of a slice of scores (score_slices.h) in fp64, for references and cases of ops.
#pragma once

#include <span>
#include <vector>

#include "heddle/ir/score_edits.h"
#include "heddle/ir/step.h"
#include "heddle/ops/sample/score_slices.h"

namespace heddle {

// A row of logits with the bias, the penalties and the mask of sequence `s`. `edits`, `masks`: of all slots (score_edits.h).
std::vector<double> edited_scores(std::span<const double> logits, const StepHost& host,
                                  const StepDevice& device, i32 s, std::span<const double> edits,
                                  const std::byte* masks);

struct SliceParts {
  std::vector<double> best;    // [kParts]
  std::vector<double> sorted;  // [kSize], descending, then minus infinity
  std::vector<double> blocks;  // [kPlanes, kBlocks]
};

// The parts of slice `slice` of a row's scores. A NaN counts as minus infinity. Without a temperature all weights are 0.
SliceParts slice_parts(std::span<const double> scores, i32 slice, double temperature);

}  // namespace heddle
