// From graph to program: fuse, place in memory, cut into tiles, schedule, find the edges, pack.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "heddle/engine/passes.h"
#include "heddle/engine/placement.h"
#include "heddle/ir/graph.h"
#include "heddle/ir/program/cost.h"
#include "heddle/ir/program/program.h"
#include "heddle/schedule/schedule.h"

namespace heddle {

constexpr const char* kDefaultScheduler = "level_batched";

// Configurations by the names of main ops.
using ChosenConfigs = std::map<std::string, OpConfig>;

struct CompileOptions {
  std::string scheduler = kDefaultScheduler;
  OwnPolicy own_policy = {};  // runs in place of the scheduler of that name, which messages still use
  PassOptions passes;
  TilingTarget tiling;
  ChosenConfigs configs;           // for the calls that have them; other calls have their default
  std::optional<CostModel> costs;  // costs for the scheduler; unset: default_costs
  bool keep_buffers = false;  // every activation keeps its own memory, so that it can be read after a step
};

// Gives each node the configuration that is chosen for its main op, if the op has it for such a call. Returns
// the names of the ops that took theirs.
std::set<std::string> choose_configs(Graph& graph, const TilingTarget& target, const ChosenConfigs& configs);

// In the graph's order of nodes, each call's inputs must be made before it. The program's buffers have the
// graph's ids. The caller must prove the result (ir/check) before it runs.
Program compile(Graph graph, const StepShape& shape, Placement placement, const CompileOptions& options);

}  // namespace heddle
