#include "heddle/engine/compile.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/engine/lower.h"
#include "heddle/engine/target.h"

namespace heddle {
namespace {

// Packs lowered tiles into the instruction streams and records of a program.
class Packer {
 public:
  Packer(const Graph& graph, const Tiles& tiles, const Edges& edges)
      : graph_(graph), tiles_(tiles), edges_(edges) {}

  void pack(Program& program, const Schedule& schedule) {
    add_calls(program);
    add_counters(program);
    for (const auto& order : schedule.workers) {
      auto& stream = program.workers.emplace_back();
      for (u32 t : order) add_tile(stream, t);
      stream.push_back(Instruction{});
    }
  }

 private:
  void add_calls(Program& program) {
    std::map<std::string, u16> opcodes;
    for (const Node& node : graph_.nodes()) {
      auto [found, fresh] =
          opcodes.try_emplace(fmt::format("{}@{} {}", chain_name(node), node.main, node.config.text()),
                              u16(program.opcodes.size()));
      if (fresh) {
        Opcode opcode{.main = node.main, .config = node.config};
        for (const Part& part : node.parts) opcode.ops.push_back(part.op->name);
        opcode.hash = chain_hash(opcode.ops, opcode.main);
        program.opcodes.push_back(std::move(opcode));
      }
      Call call{.opcode = found->second, .name = node.name, .live = node.live, .args = {}};
      for (const Part& part : node.parts) call.args.push_back(part.args);
      opcode_of_.push_back(call.opcode);
      program.calls.push_back(std::move(call));
    }
  }

  void add_counters(Program& program) {
    counter_.assign(tiles_.of_group.size(), kNoCounter);
    for (size_t g = 0; g < counter_.size(); ++g) {
      if (!edges_.waited[g]) continue;
      counter_[g] = u32(program.counters.size());
      program.counters.push_back({u32(tiles_.of_group[g].size())});
    }
  }

  void add_tile(std::vector<Instruction>& stream, u32 t) {
    const LoweredTile& tile = tiles_.all[t];
    std::span<const EdgeWait> waits = edges_.waits[t];
    // A tile waits for at most three counters; instructions without work before it wait for the others.
    while (waits.size() > size_t(kMaxWaits)) {
      Instruction nop{.opcode = kNopOpcode, .call = tile.node};
      set_waits(nop, waits.first(kMaxWaits));
      stream.push_back(nop);
      waits = waits.subspan(kMaxWaits);
    }
    Instruction instruction{.opcode = opcode_of_[tile.node], .call = tile.node};
    std::copy(tile.at.at, tile.at.at + 4, instruction.tile);
    set_waits(instruction, waits);
    if (counter_[tile.group] != kNoCounter) {
      instruction.signal = {counter_[tile.group], 1};
      instruction.set_signal_kind(edges_.kind[tile.group]);
    }
    instruction.stream_items = stream_items(graph_.nodes()[tile.node], tile.at);
    stream.push_back(instruction);
  }

  void set_waits(Instruction& instruction, std::span<const EdgeWait> waits) const {
    for (int i = 0; i < int(waits.size()); ++i) {
      const EdgeWait& wait = waits[size_t(i)];
      instruction.waits[i] = {counter_[wait.group], u32(tiles_.of_group[wait.group].size())};
      instruction.set_wait_kind(i, edges_.kind[wait.group]);
      instruction.set_previous(i, wait.previous);
    }
  }

  const Graph& graph_;
  const Tiles& tiles_;
  const Edges& edges_;
  std::vector<u16> opcode_of_;
  std::vector<u32> counter_;
};

// Costs of the tiles of one node. Tiles with equal extents cost the same.
class NodeCosts {
 public:
  NodeCosts(const Node& node, const std::vector<BufferKind>& kinds, const CostModel& model)
      : rule_(node, kinds), model_(&model), chain_(chain_name(node)) {}

  ScheduleTile tile(const LoweredTile& tile) {
    const std::array<i32, 2> extents = {tile.at[1] - tile.at[0], tile.at[3] - tile.at[2]};
    if (!known_ || extents != extents_) {
      const Cost cost = rule_(tile.at);
      cost_ = model_->tile_ns(chain_, cost);
      memory_bound_ = std::max(model_->stream_ns(cost), model_->ns_per_byte * cost.bytes) >=
                      model_->ns_per_flop * cost.flops;
      extents_ = extents, known_ = true;
    }
    return {tile.node, tile.home, cost_, memory_bound_, tile.at};
  }

 private:
  CostRule rule_;
  const CostModel* model_;
  std::string chain_;
  bool known_ = false, memory_bound_ = false;
  std::array<i32, 2> extents_ = {};
  double cost_ = 0;
};

ScheduleInput schedule_input(const Graph& graph, const Tiles& tiles, const Hazards& hazards,
                             const Topology& topology, const CostModel& costs) {
  ScheduleInput input{.workers = u32(topology.workers),
                      .message = topology.workers > 1 ? costs.ns_per_message : 0,
                      .after = hazards.after};
  std::vector<BufferKind> kinds;
  for (const Buffer& buffer : graph.buffers()) kinds.push_back(buffer.kind);
  std::map<std::string, u32> ops;
  for (const Node& node : graph.nodes()) {
    const auto [op, is_new] = ops.try_emplace(chain_name(node), u32(ops.size()));
    if (is_new) input.op_name.push_back(op->first);
    input.op.push_back(op->second);
    input.name.push_back(node.name);
  }
  std::optional<NodeCosts> of_node;
  for (size_t t = 0; t < tiles.all.size(); ++t) {
    const LoweredTile& tile = tiles.all[t];
    if (t == 0 || tile.node != tiles.all[t - 1].node) of_node.emplace(graph.nodes()[tile.node], kinds, costs);
    input.tiles.push_back(of_node->tile(tile));
  }
  return input;
}

// Rows of weights and of resident buffers that belong to one worker, in logical bytes.
void add_homes(const Graph& graph, const Placement& placement, Program& program) {
  for (const PlacedWeight& weight : weights_of(graph)) {
    auto found = placement.weights.find(weight.name);
    if (found == placement.weights.end() || weight.unit_bytes == 0) continue;
    u32 buffer = 0;
    while (graph.buffers()[buffer].name != weight.name) ++buffer;
    const i64 row = weight.unit_bytes / weight.matrices,
              period = weight.matrices > 1 ? (weight.rows + weight.unit - 1) / weight.unit * row : 0;
    for (size_t w = 0; w + 1 < found->second.size(); ++w) {
      if (found->second[w] == found->second[w + 1]) continue;
      const i64 first = found->second[w] / weight.unit,
                last = (found->second[w + 1] + weight.unit - 1) / weight.unit;
      if (first < last) program.homes.push_back({buffer, first * row, last * row, period, u32(w)});
    }
  }
  for (u32 b = 0; b < graph.buffers().size(); ++b) {
    const Buffer& buffer = graph.buffers()[b];
    if (!buffer.resident) continue;
    require(!placement.resident.empty(), "[placement] {} is resident and its rows have no homes",
            buffer.name);
    const i64 element = 4, period = placement.resident.back() * element;  // FP32 rows of the residual
    for (size_t w = 0; w + 1 < placement.resident.size(); ++w)
      program.homes.push_back(
          {b, placement.resident[w] * element, placement.resident[w + 1] * element, period, u32(w)});
  }
}

}  // namespace

std::set<std::string> choose_configs(Graph& graph, const TilingTarget& target, const ChosenConfigs& configs) {
  std::set<std::string> taken;
  for (Node& node : graph.nodes()) {
    const auto chosen = configs.find(node.main_part().op->name);
    if (chosen == configs.end()) continue;
    for (const OpConfig& config : configs_of(*node.main_part().op, node.main_part().args.data(), target))
      if (config.values() == chosen->second.values()) node.config = config, taken.insert(chosen->first);
  }
  return taken;
}

Program compile(Graph graph, const StepShape& shape, Placement placement, const CompileOptions& options) {
  run_passes(graph, options.passes);
  choose_configs(graph, options.tiling, options.configs);
  leave_homes(graph, options.tiling, placement);
  const Tiles tiles = cut_tiles(graph, placement, options.tiling);
  const ArenaPlan arena = plan_arena(graph, options.keep_buffers);
  const Hazards hazards = find_hazards(graph, arena, tiles);
  const CostModel costs = options.costs.value_or(default_costs(placement.topology));
  const ScheduleInput input = schedule_input(graph, tiles, hazards, placement.topology, costs);
  const Schedule schedule =
      options.own_policy ? options.own_policy(input) : get_scheduler(options.scheduler).run(input);
  require_complete(input, schedule, options.scheduler);
  const Edges edges = find_edges(tiles, hazards, schedule);
  Program program;
  program.topology = placement.topology;
  program.shape = shape;
  program.arena_bytes = arena.bytes;
  for (u32 b = 0; b < graph.buffers().size(); ++b)
    program.buffers.push_back({graph.buffers()[b], arena.offset[b]});
  Packer(graph, tiles, edges).pack(program, schedule);
  add_homes(graph, placement, program);
  return program;
}

}  // namespace heddle
