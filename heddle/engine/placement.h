// Placement: which worker owns which rows. Made once per model and topology, for all row classes, before any
// schedule: a weight's rows and the residual's rows have a home, balanced by bytes over the whole stream.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/engine/passes.h"
#include "heddle/ir/graph.h"
#include "heddle/ir/program.h"

namespace heddle {

// Borders of the workers' shares of a dimension: worker w owns [at[w], at[w + 1]).
using Shares = std::vector<i32>;

struct PlacedWeight {
  std::string name;  // of the weight's buffer
  i32 rows = 0;
  i32 unit = 1;           // rows that stay together (a panel)
  i64 unit_bytes = 0;     // in all matrices
  bool resident = false;  // its output rows are the residual's: all of these share one division
  i32 matrices = 1;
};

struct Placement {
  Topology topology;
  std::map<std::string, Shares> weights;  // by buffer name
  Shares resident;                        // rows of the residual; empty: nothing is resident
  // Largest difference of a worker's bytes from the mean, as a part of the mean.
  double imbalance = 0;
};

// Divides the weights among the workers: residual rows evenly, the other matrices so that sums stay level,
// and the matrices of the last group (the LM head) to make up what is left. Throws when workers outnumber units.
Placement place(const std::vector<PlacedWeight>& weights, const Topology& topology);

// Weights of a fused graph in the order of their use, with the unit their panels give; before them the residual,
// where it is resident.
std::vector<PlacedWeight> weights_of(const Graph& graph);

// Fuses the graph of any row class of a model and places its weights.
Placement place(Graph graph, const PassOptions& passes, const Topology& topology);

}  // namespace heddle
