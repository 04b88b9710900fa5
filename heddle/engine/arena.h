// The memory planner: activations share one arena by lifetime, and outputs use the bytes of inputs where that
// is legal.
#pragma once

#include <vector>

#include "heddle/ir/graph.h"

namespace heddle {

struct ArenaPlan {
  std::vector<i64> offset;  // by buffer; -1: memory of its own
  i64 bytes = 0;
};

// Counts lifetimes in nodes. Outputs, state and resident buffers never share. With `keep_buffers` nothing
// shares.
ArenaPlan plan_arena(const Graph& graph, bool keep_buffers);

}  // namespace heddle
