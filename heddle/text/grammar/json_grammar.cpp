#include "heddle/text/grammar/json_grammar.h"

#include <algorithm>
#include <set>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr u32 kFar = UINT32_MAX;

}  // namespace

void JsonGrammar::measure() {
  depths.assign(nodes.size(), kFar);
  const auto more = [](u32 depth) { return depth == kFar ? kFar : depth + 1; };
  const auto of = [&](const JsonNode& node) {
    u32 inside = 0;
    switch (node.kind) {
      case JsonNode::kLeaf:
        return 0u;
      case JsonNode::kOneOf:
        inside = kFar;
        for (const NodeId one : node.nodes) inside = std::min(inside, depths[one]);
        return inside;
      case JsonNode::kObject:
        for (const JsonProperty& one : node.properties)
          if (one.required) inside = std::max(inside, depths[one.value]);
        return more(inside);
      case JsonNode::kSequence:
        for (const NodeId one : node.nodes) inside = std::max(inside, depths[one]);
        return inside;
      default:
        for (size_t i = 0; i < std::min<size_t>(node.least, node.nodes.size()); ++i)
          inside = std::max(inside, depths[node.nodes[i]]);
        if (node.least > node.nodes.size()) inside = std::max(inside, depths[node.others]);
        return more(inside);
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (const u32 depth = of(nodes[i]); depth != depths[i]) depths[i] = depth, changed = true;
  }
  if (depths[root] > kMostDepth)
    fail(ErrorCode::kUnsupported,
         "[schema] each of its values needs more than {} levels of objects and arrays", kMostDepth);
}

void JsonGrammar::flatten() {
  std::vector<std::vector<NodeId>> flat(nodes.size());
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (nodes[id].kind != JsonNode::kOneOf) continue;
    std::vector<NodeId> waiting{id};
    std::set<NodeId> seen{id};
    while (!waiting.empty()) {
      const NodeId one = waiting.back();
      waiting.pop_back();
      if (nodes[one].kind != JsonNode::kOneOf) {
        flat[id].push_back(one);
        continue;
      }
      for (const NodeId next : nodes[one].nodes)
        if (seen.insert(next).second) waiting.push_back(next);
    }
    std::ranges::sort(flat[id]);
  }
  for (NodeId id = 0; id < nodes.size(); ++id)
    if (nodes[id].kind == JsonNode::kOneOf) nodes[id].nodes = std::move(flat[id]);
}

}  // namespace heddle
