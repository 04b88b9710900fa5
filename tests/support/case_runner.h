// Runs one case of an op on an executor: memory with canaries around every buffer and poisoned outputs, a
// program of the one call, then the comparison with the op's fp64 reference.
#pragma once

#include <string>

#include "heddle/ir/op.h"

namespace heddle {

struct CaseResult {
  double error = 0;  // largest |value - reference| / (1 + |reference|)
  double bound = 0;
  std::string problem;  // empty: within the bound, every output byte written, canaries untouched
};

CaseResult run_case(const OpSpec& op, const Case& test, const std::string& executor);

// Whether the case can stand in a chain: its op is a prologue or an epilogue, and what is handed on is f32, so
// that the value that is not stored would not be rounded either.
bool fits_chain(const OpSpec& op, const Case& test);
// The same comparison for the op as a part of a chain: an epilogue gets its input from a linear, in tiles of a few
// rows and panels; a prologue hands its output to one.
CaseResult run_chain(const OpSpec& op, const Case& test, const std::string& executor);

}  // namespace heddle
