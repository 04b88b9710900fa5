#include "heddle/engine/placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"

namespace heddle {
namespace {

// Gives `units` units to workers so that loads are as even as whole units allow. Every worker's share differs
// from the mean by at most `slack` units. Returns the count of each worker.
std::vector<i32> level(i32 units, i64 unit_bytes, std::vector<i64>& load, i32 slack) {
  const i32 workers = i32(load.size());
  const i32 even = units / workers;
  const i32 least = std::max(0, even - slack), most = even + 1 + slack;
  std::vector<i32> count(load.size(), least);
  for (size_t w = 0; w < load.size(); ++w) load[w] += i64(least) * unit_bytes;
  i32 left = units - least * workers;
  // The worker with the least load takes the next unit; a heap makes this units x log(workers).
  auto heavier = [&](i32 a, i32 b) {
    return load[size_t(a)] != load[size_t(b)] ? load[size_t(a)] > load[size_t(b)] : a > b;
  };
  std::vector<i32> heap(load.size());
  std::iota(heap.begin(), heap.end(), 0);
  std::make_heap(heap.begin(), heap.end(), heavier);
  while (left > 0 && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), heavier);
    const i32 worker = heap.back();
    if (count[size_t(worker)] == most) {
      heap.pop_back();
      continue;
    }
    ++count[size_t(worker)], --left;
    load[size_t(worker)] += unit_bytes;
    std::push_heap(heap.begin(), heap.end(), heavier);
  }
  HEDDLE_CHECK(left == 0);
  return count;
}

Shares borders(const std::vector<i32>& count, i32 unit, i32 rows) {
  Shares shares = {0};
  for (i32 n : count) shares.push_back(std::min(rows, shares.back() + n * unit));
  return shares;
}

}  // namespace

Placement place(const std::vector<PlacedWeight>& weights, const Topology& topology) {
  require(topology.workers > 0, "[placement] {} workers; must be positive", topology.workers);
  Placement placement;
  placement.topology = topology;
  std::vector<i64> load(size_t(topology.workers), 0);
  auto units_of = [](const PlacedWeight& weight) { return (weight.rows + weight.unit - 1) / weight.unit; };
  // Divides the rows of the residual first, in one way for all weights.
  for (const PlacedWeight& weight : weights) {
    if (!weight.resident) continue;
    if (placement.resident.empty()) {
      std::vector<i64> none(load.size(), 0);
      placement.resident = borders(level(units_of(weight), 1, none, 0), weight.unit, weight.rows);
    }
    placement.weights[weight.name] = placement.resident;
    for (size_t w = 0; w < load.size(); ++w)
      load[w] += i64(placement.resident[w + 1] - placement.resident[w] + weight.unit - 1) / weight.unit *
                 weight.unit_bytes;
  }
  // Then the other matrices, in order. The last one (the LM head) may differ from the mean by any amount.
  const PlacedWeight* last = nullptr;
  for (const PlacedWeight& weight : weights)
    if (!weight.resident) last = &weight;
  for (const PlacedWeight& weight : weights) {
    if (weight.resident) continue;
    const i32 units = units_of(weight), slack = &weight == last ? units : 1;
    placement.weights[weight.name] =
        borders(level(units, weight.unit_bytes, load, slack), weight.unit, weight.rows);
  }
  const double mean = double(std::accumulate(load.begin(), load.end(), i64{0})) / double(load.size());
  for (i64 bytes : load)
    placement.imbalance = std::max(placement.imbalance, mean > 0 ? std::abs(double(bytes) - mean) / mean : 0);
  return placement;
}

namespace {

void add_weight(const Graph& graph, const Weight& weight, bool resident, std::vector<PlacedWeight>& found) {
  if (!weight.data.exists()) return;
  const std::string& name = graph.buffers()[weight.data.buffer].name;
  for (const PlacedWeight& other : found)
    if (other.name == name) return;
  const i64 unit_bytes = weight.panel_bytes() * weight.slices() * weight.matrices;
  found.push_back({name, weight.rows(), weight.panel_rows, unit_bytes, resident, weight.matrices});
}

// The resident tensor that a call writes, or null.
const Tensor* resident_output(const Graph& graph, const Node& node) {
  const Tensor* written = nullptr;
  for (const Part& part : node.parts)
    for (const Field& field : part.op->fields) {
      if (!field.writes()) continue;
      const Tensor& value = field.tensor(part.args.data());
      if (value.exists() && graph.buffers()[value.buffer].resident) written = &value;
    }
  return written;
}

}  // namespace

std::vector<PlacedWeight> weights_of(const Graph& graph) {
  std::vector<PlacedWeight> found;
  const Tensor* residual = nullptr;
  for (const Node& node : graph.nodes()) {
    const Tensor* written = resident_output(graph, node);
    if (written) residual = written;
    if (!node.main_part().op->traits.main) continue;  // look-ups (embedding) read rows from any home
    const Part& main = node.main_part();
    for (const Field& field : main.op->fields)
      if (field.is_weight()) add_weight(graph, field.weight(main.args.data()), written != nullptr, found);
  }
  if (residual && !found.empty())  // its rows have homes even if no matrix writes them
    found.insert(found.begin(), {.name = graph.buffers()[residual->buffer].name,
                                 .rows = residual->last(),
                                 .unit = found.front().unit,
                                 .resident = true});
  return found;
}

Placement place(Graph graph, const PassOptions& passes, const Topology& topology) {
  run_passes(graph, passes);
  return place(weights_of(graph), topology);
}

}  // namespace heddle
