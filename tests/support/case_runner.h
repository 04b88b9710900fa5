// Runs one case of an op on an executor. All buffers have canaries around them, outputs are poisoned, and the
// program is this one call. Then it compares with the op's fp64 reference.
#pragma once

#include <string>

#include "heddle/ir/op.h"
#include "tests/support/case_memory.h"

namespace heddle {

struct CaseResult {
  double error = 0;  // largest |value - reference| / (1 + |reference|)
  double bound = 0;
  std::string problem;          // empty: within the bound, every output byte written, canaries untouched
  std::vector<double> outputs;  // all values of all outputs, of the last program that ran
};

struct CaseOptions {
  const OpConfig* config = nullptr;  // one of the op's configurations for such a call; null: its default
  std::string simd;                  // threads only: the name of a SIMD level; empty: the best one
  Planted planted;                   // no field: nothing
};
CaseResult run_case(const OpSpec& op, const Case& test, const std::string& executor, const CaseOptions& = {});

// True if the case can be part of a chain: its op is a prologue or an epilogue, and the tensor inside the
// chain is f32, so that storing it would not round it.
bool fits_chain(const OpSpec& op, const Case& test);
// Same, for the op as part of a chain: an epilogue gets its input from a linear, in tiles of a few rows and
// panels; a prologue gives its output to one.
CaseResult run_chain(const OpSpec& op, const Case& test, const std::string& executor);

}  // namespace heddle
