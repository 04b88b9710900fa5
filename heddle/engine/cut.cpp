#include <algorithm>
#include <map>

#include "heddle/engine/lower.h"

namespace heddle {
namespace {

struct FindShares : ArgVisitor {
  const Graph* graph;
  const Placement* placement;
  std::map<std::string, const Shares*> by_dim;  // dimension name -> borders

  static std::string dim(const std::string& dims, bool first) {
    const size_t comma = dims.rfind(", ");
    if (comma == std::string::npos) return dims;
    return first ? dims.substr(0, comma) : dims.substr(comma + 2);
  }
  void tensor(const char*, Tensor& value, const char* dims, Access access) override {
    if (value.exists() && access == Access::kWrite && graph->buffers()[value.buffer].resident)
      by_dim[dim(dims, false)] = &placement->resident;
  }
  void weight(const char*, Weight& value, const char* dims) override {
    if (!value.data.exists()) return;
    auto found = placement->weights.find(graph->buffers()[value.data.buffer].name);
    if (found != placement->weights.end()) by_dim[dim(dims, true)] = &found->second;
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

// Tiles of one node with the worker whose share each lies in.
std::vector<LoweredTile> cut_node(const Node& node, u32 index, const FindShares& shares) {
  std::vector<LoweredTile> tiles = {{.node = index}};
  int at = 0;
  for (const TileAxis& axis : node.main_part().op->axes(node.main_part().args.data(), TilingTarget{})) {
    std::vector<LoweredTile> next;
    auto found = shares.by_dim.find(axis.dim);
    if (found != shares.by_dim.end() && axis.kind == TileAxis::Kind::kRange) {
      const Shares& borders = *found->second;
      for (const LoweredTile& tile : tiles)
        for (size_t w = 0; w + 1 < borders.size(); ++w) {
          if (borders[w] == borders[w + 1]) continue;
          LoweredTile cut = tile;
          cut.at[at] = borders[w], cut.at[at + 1] = borders[w + 1];
          cut.home = i32(w);
          next.push_back(cut);
        }
    } else {
      for (const TileCoord& piece : default_tiles(std::span(&axis, 1)))
        for (const LoweredTile& tile : tiles) {
          LoweredTile cut = tile;
          cut.at[at] = piece[0];
          if (axis.kind == TileAxis::Kind::kRange) cut.at[at + 1] = piece[1];
          next.push_back(cut);
        }
    }
    at += axis.kind == TileAxis::Kind::kRange ? 2 : 1;
    tiles = std::move(next);
  }
  return tiles;
}

}  // namespace

Tiles cut_tiles(const Graph& graph, const Placement& placement) {
  Tiles tiles;
  for (u32 n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    FindShares shares;
    shares.graph = &graph;
    shares.placement = &placement;
    for (const Part& part : node.parts)
      if (part.op->traits.main || &part == &node.main_part())
        part.op->visit(const_cast<std::byte*>(part.args.data()), shares);
    const auto axes = node.main_part().op->axes(node.main_part().args.data(), TilingTarget{});
    const bool by_first =
        !axes.empty() && (axes[0].kind == TileAxis::Kind::kRange || placement.topology.cluster > 1);
    std::map<i32, u32> group_of;  // first coordinate -> group
    for (LoweredTile& tile : cut_node(node, n, shares)) {
      const i32 key = by_first ? tile.at[0] : 0;
      auto [found, fresh] = group_of.try_emplace(key, u32(tiles.group_node.size()));
      if (fresh) {
        tiles.group_node.push_back(n);
        tiles.of_group.emplace_back();
      }
      tile.group = found->second;
      tiles.of_group[tile.group].push_back(u32(tiles.all.size()));
      tiles.all.push_back(tile);
    }
  }
  return tiles;
}

}  // namespace heddle
