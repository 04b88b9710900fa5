// From graph to program: fuse, place in memory, cut in tiles, schedule, find the edges, pack.
#pragma once

#include <optional>
#include <string>

#include "heddle/engine/passes.h"
#include "heddle/engine/placement.h"
#include "heddle/ir/cost.h"
#include "heddle/ir/graph.h"
#include "heddle/ir/program.h"

namespace heddle {

constexpr const char* kDefaultScheduler = "level_batched";

struct CompileOptions {
  std::string scheduler = kDefaultScheduler;
  PassOptions passes;
  TilingTarget tiling;
  std::optional<CostModel> costs;  // by which the scheduler decides; unset: default_costs
  bool keep_buffers = false;       // every activation keeps memory of its own, to be read after a step
};

// The graph's nodes must be in an order in which each call's inputs are made before it; ids of a program's
// buffers are those of the graph. It is for the caller to prove the result (ir/check) before it runs.
Program compile(Graph graph, const StepShape& shape, Placement placement, const CompileOptions& options);

}  // namespace heddle
