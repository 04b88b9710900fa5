#include <algorithm>
#include <map>

#include "heddle/engine/lower.h"

namespace heddle {
namespace {

struct FindShares : ArgVisitor {
  const Graph* graph;
  const Placement* placement;
  std::map<std::string, const Shares*> by_dim;  // dimension name -> borders
  bool of_main = true;                          // the part being visited names the tile's dimensions
  bool only_resident = true;                    // writes nothing that another worker may read

  static std::string dim(const std::string& dims, bool first) {
    const size_t comma = dims.rfind(", ");
    if (comma == std::string::npos) return dims;
    return first ? dims.substr(0, comma) : dims.substr(comma + 2);
  }
  void tensor(const char*, Tensor& value, const char* dims, Access access) override {
    if (!value.exists() || access != Access::kWrite) return;
    const bool resident = graph->buffers()[value.buffer].resident;
    if (resident && of_main) by_dim[dim(dims, false)] = &placement->resident;
    only_resident &= resident;
  }
  void weight(const char*, Weight& value, const char* dims) override {
    if (!value.data.exists() || !of_main) return;
    auto found = placement->weights.find(graph->buffers()[value.data.buffer].name);
    if (found != placement->weights.end()) by_dim[dim(dims, true)] = &found->second;
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

// Tiles of one node with the worker whose share each lies in.
std::vector<LoweredTile> cut_node(const std::vector<TileAxis>& axes, u32 index, const FindShares& shares) {
  std::vector<LoweredTile> tiles = {{.node = index}};
  int at = 0;
  for (const TileAxis& axis : axes) {
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

// What tiles of one group have in common.
i32 group_key(const LoweredTile& tile, const std::vector<TileAxis>& axes, bool only_resident) {
  if (only_resident && tile.home != kNoHome) return tile.home;
  // What reads tiles of a range without a name knows none of its borders.
  const bool range = !axes.empty() && axes[0].kind == TileAxis::Kind::kRange && *axes[0].dim != '\0';
  return range ? tile.at[0] : 0;
}

// Forgets where the rows of a call's weights have their homes.
struct LeaveHomes : ArgVisitor {
  const Graph* graph;
  Placement* placement;

  void tensor(const char*, Tensor&, const char*, Access) override {}
  void weight(const char*, Weight& value, const char*) override {
    if (value.data.exists()) placement->weights.erase(graph->buffers()[value.data.buffer].name);
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

}  // namespace

void leave_homes(const Graph& graph, const TilingTarget& target, Placement& placement) {
  LeaveHomes leave;
  leave.graph = &graph;
  leave.placement = &placement;
  for (const Node& node : graph.nodes()) {
    const Part& main = node.main_part();
    if (std::ranges::any_of(main.op->axes(main.args.data(), target), &TileAxis::anywhere))
      main.op->visit(const_cast<std::byte*>(main.args.data()), leave);
  }
}

Tiles cut_tiles(const Graph& graph, const Placement& placement, const TilingTarget& target) {
  Tiles tiles;
  for (u32 n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    FindShares shares;
    shares.graph = &graph;
    shares.placement = &placement;
    for (const Part& part : node.parts) {
      shares.of_main = &part == &node.main_part();
      part.op->visit(const_cast<std::byte*>(part.args.data()), shares);
    }
    const auto axes = node.main_part().op->axes(node.main_part().args.data(), target);
    std::vector<LoweredTile> of_node = cut_node(axes, n, shares);
    std::map<i32, u32> group_of;
    for (LoweredTile& tile : of_node) {
      const i32 key = group_key(tile, axes, shares.only_resident);
      auto [found, fresh] = group_of.try_emplace(key, u32(tiles.group_node.size()));
      if (fresh) {
        tiles.group_node.push_back(n);
        tiles.of_group.emplace_back();
        tiles.group_home.push_back(shares.only_resident ? tile.home : kNoHome);
      }
      tile.group = found->second;
      tiles.of_group[tile.group].push_back(u32(tiles.all.size()));
      tiles.all.push_back(tile);
    }
  }
  return tiles;
}

}  // namespace heddle
