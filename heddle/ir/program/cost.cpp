#include "heddle/ir/program/cost.h"

#include <algorithm>
#include <iterator>

namespace heddle {

double node_flops(const Node& node, const TileCoord& tile) {
  double flops = 0;
  for (size_t i = 0; i < node.parts.size(); ++i) {
    const Part& part = node.parts[i];
    if (part.op->flops) flops += part.op->flops(part.args.data(), part_tile(node, i, tile));
  }
  return flops;
}

CostRule::CostRule(const Node& node, const std::vector<BufferKind>& kinds)
    : node_(&node), kinds_(&kinds), rule_(node) {}

Cost CostRule::operator()(const TileCoord& tile) const {
  Cost cost;
  std::vector<Region> regions;
  rule_.append(tile, regions);
  for (const Region& region : regions) add(region, cost);
  cost.flops = node_flops(*node_, tile);
  const Part& main = node_->main_part();
  if (main.op->stream_bytes) cost.stream_bytes = main.op->stream_bytes(main.args.data(), tile);
  return cost;
}

void CostRule::add(const Region& region, Cost& cost) const {
  const double bytes = double(region.bytes());
  switch ((*kinds_)[region.buffer]) {
    case BufferKind::kStepHost:  // a tile reads a few words of it
    case BufferKind::kStepDevice:
    case BufferKind::kTable:
    case BufferKind::kPages:  // all of them: a region cannot say more
      return;
    case BufferKind::kWeight:
      if (!region.indexed) cost.stream_bytes += bytes;
      return;
    case BufferKind::kActivation:
    case BufferKind::kOutput:
    case BufferKind::kBorrowed:
      cost.bytes += bytes;
  }
}

double CostModel::compute_ns(const std::string& chain, const Cost& cost) const {
  const auto factor = factors.find(chain);
  const double work = std::max(ns_per_flop * cost.flops, ns_per_byte * cost.bytes);
  return ns_per_tile + work * (factor == factors.end() ? 1 : factor->second);
}

double CostModel::tile_ns(const std::string& chain, const Cost& cost) const {
  return std::max(compute_ns(chain, cost), stream_ns(cost));
}

double CostModel::message_ns(EdgeKind kind) const {
  return kind == EdgeKind::kInSm ? 0 : ns_per_message;
}

std::vector<std::vector<Cost>> costs_of(const Program& program) {
  std::vector<BufferKind> kinds;
  for (const ProgramBuffer& buffer : program.buffers) kinds.push_back(buffer.info.kind);
  std::vector<Node> nodes;
  for (const Call& call : program.calls) nodes.push_back(program.node_of(call));
  std::vector<CostRule> rules;
  for (const Node& node : nodes) rules.emplace_back(node, kinds);
  std::vector<std::vector<Cost>> costs;
  for (const auto& stream : program.workers) {
    auto& of_worker = costs.emplace_back();
    for (const Instruction& instruction : stream) {
      TileCoord tile;
      std::copy(std::begin(instruction.tile), std::end(instruction.tile), tile.at);
      of_worker.push_back(instruction.opcode < kNopOpcode ? rules[instruction.call](tile) : Cost{});
    }
  }
  return costs;
}

}  // namespace heddle
