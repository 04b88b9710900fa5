// Calls of ops on memory of the caller, as a graph: what must wait for what follows from addresses, in the order of
// the calls. Tensors that share bytes lie in one buffer, so that views of one matrix and calls in place are ordered too.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/engine/compile.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/graph.h"

namespace heddle {

struct MemoryCall {
  const OpSpec* op = nullptr;
  std::vector<std::byte> args;  // tensors have addresses; outputs too
};

struct MemoryGraph {
  Graph graph;
  Memory memory;    // where its buffers lie now
  std::string key;  // equal for calls that differ in their addresses alone: one program serves them
  i32 rows = 1;     // the most rows that a call's tensors have
};

// Throws Error with the op and the argument for a call that the op's rules refuse, that lacks an output, or whose
// tensors have rows that overlap or run backwards. Calls whose outputs are empty are left out.
MemoryGraph graph_of_calls(std::span<const MemoryCall> calls);

// A program of these calls for the workers of an executor's device, proved. Nothing is fused, since every tensor is
// the caller's. `workers`: 0 means as many as the device, or the process, has. `own_policy`, if any, schedules them, and
// `scheduler` is its name in messages.
Program compile_calls(const MemoryGraph& calls, const std::string& executor, const std::string& scheduler,
                      i32 workers, const OwnPolicy& own_policy = {});

}  // namespace heddle
