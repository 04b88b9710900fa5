// Runs cases of ops by themselves, on memory laid out as callers have it: poisoned outputs, canaries around every tensor
// and between its rows.
#pragma once

#include <string>

#include "heddle/ir/call/op_call.h"
#include "heddle/ir/executor/executor.h"
#include "tests/support/case_memory.h"

namespace heddle {

// The layout of a call's tensors.
enum class CallLayoutKind {
  kDense,    // row after row, from a multiple of 64 bytes on
  kStrided,  // with elements between rows that belong to nobody
  kOffset,   // strided, and from one element past such a multiple on
};
const char* name(CallLayoutKind kind);

struct CallOptions {
  CallLayoutKind kind = CallLayoutKind::kDense;
  int threads = 1;
  const OpConfig* config = nullptr;
  Planted planted;  // no field: nothing
};
struct CallResult {
  std::string problem;  // empty: the outputs are as the op's reference has them, and nothing else was written
  std::vector<double> outputs;  // all values of all outputs
  CallNeeds needs;
};
CallResult run_call(const OpSpec& op, const Case& test, const Backend& backend, const CallOptions& options);

// Empty: the outputs are as the op's reference has them, and nothing else was written.
std::string run_call(const OpSpec& op, const Case& test, const Backend& backend, CallLayoutKind kind,
                     int threads = 1);

}  // namespace heddle
