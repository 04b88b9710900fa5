// Derives costs from a traced run.
#pragma once

#include <string>

#include "heddle/ir/program/cost.h"
#include "heddle/ir/trace.h"

namespace heddle {

// Returns the costs of ops and messages that `trace` shows; the others stay as in `start`. If its steps took
// longer than these costs predict, messages get the difference. The result predicts other programs on the
// same workers. Throws Error when the trace is empty.
CostModel calibrate(const Program& program, const Trace& trace, CostModel start);

// Writes JSON: the fields of CostModel, and "factors".
std::string to_json(const CostModel& model);
// A missing field keeps its value of `start`. Throws Error(kIo), with `where`, when the text is not such a
// file.
CostModel parse_costs(const std::string& text, const std::string& where, CostModel start);

}  // namespace heddle
