#include "heddle/backend/cpu/call_regions.h"

namespace heddle {

CallRegions::CallRegions(const Program& program) {
  nodes_.reserve(program.calls.size());
  for (const Call& call : program.calls) nodes_.push_back(program.node_of(call));
  for (const Node& node : nodes_) rules_.emplace_back(node);
}

void CallRegions::append(u32 call, const TileCoord& tile, std::vector<Region>& out) const {
  rules_[call].append(tile, out);
}

}  // namespace heddle
