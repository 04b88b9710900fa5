// Costs from what a run took.
#pragma once

#include <string>

#include "heddle/ir/cost.h"
#include "heddle/ir/trace.h"

namespace heddle {

// What `trace` says of the program's ops and messages; of what it says nothing, as in `start`. Where its steps were longer
// than predicted so, messages take the rest: predictions are for other programs on the same workers. Throws Error where the
// trace is empty.
CostModel calibrate(const Program& program, const Trace& trace, CostModel start);

// As JSON: the fields of CostModel, and "factors".
std::string to_json(const CostModel& model);
// A field that is missing is as in `start`. Throws Error(kIo), with `where`, on what is no such file.
CostModel parse_costs(const std::string& text, const std::string& where, CostModel start);

}  // namespace heddle
