// Placement decides which worker owns which rows. It is made once per model and topology, for all row
// classes, before any schedule: rows of weights and of the residual have a home, balanced by bytes over the
// whole stream. On a GPU, products of more than 64 rows are cut in both dimensions, so that operands are read
// less often (TileAxis::anywhere): in such a program their weights have no homes, and nothing is resident.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/engine/passes.h"
#include "heddle/ir/graph.h"
#include "heddle/ir/program/program.h"

namespace heddle {

// Borders of the workers' shares of a dimension: worker w owns [at[w], at[w + 1]).
using Shares = std::vector<i32>;

struct PlacedWeight {
  std::string name;  // name of the weight's buffer
  i32 rows = 0;
  i32 unit = 1;           // rows that stay together (a panel)
  i64 unit_bytes = 0;     // summed over all matrices
  bool resident = false;  // its output rows are rows of the residual; all such weights are divided alike
  i32 matrices = 1;
};

struct Placement {
  Topology topology;
  std::map<std::string, Shares> weights;  // by buffer name
  Shares resident;                        // rows of the residual; empty: nothing is resident
  // Largest difference between a worker's bytes and the mean, as a fraction of the mean.
  double imbalance = 0;
};

// Divides the weights among the workers: residual rows evenly, the other matrices so that sums stay even, and
// the matrices of the last group (the LM head) to compensate for the rest. Throws when there are more workers
// than units.
Placement place(const std::vector<PlacedWeight>& weights, const Topology& topology);

// The weights of a fused graph in the order of their use, with the unit of their panels. If the residual is
// resident, it comes first.
std::vector<PlacedWeight> weights_of(const Graph& graph);

// Fuses the graph of any row class of a model and places its weights.
Placement place(Graph graph, const PassOptions& passes, const Topology& topology);

}  // namespace heddle
