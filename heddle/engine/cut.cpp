#include <algorithm>
#include <map>

#include "heddle/engine/lower.h"
#include "heddle/ir/tile_grid.h"

namespace heddle {
namespace {

// Borders of homes in the dimensions of a call.
struct DimShares {
  std::map<std::string, const Shares*> by_dim;  // dimension name -> borders
  bool only_resident = true;                    // writes nothing that another worker may read
};

DimShares find_shares(const Graph& graph, const Placement& placement, const Node& node) {
  DimShares shares;
  const auto share = [&](const FieldDim& dim, const Shares& borders) {
    if (dim.scale == 1) shares.by_dim[dim.name] = &borders;
  };
  for (const Part& part : node.parts) {
    const bool of_main = &part == &node.main_part();  // its dimensions are the tile's
    for (const Field& field : part.op->fields) {
      if (field.is_attribute() || !field.elements(part.args.data()).exists()) continue;
      const Buffer& buffer = graph.buffers()[field.elements(part.args.data()).buffer];
      if (field.writes()) {
        if (buffer.resident && of_main) share(field.dims.back(), placement.resident);
        shares.only_resident &= buffer.resident;
      } else if (field.is_weight() && of_main) {
        const auto found = placement.weights.find(buffer.name);
        if (found != placement.weights.end()) share(field.dims.front(), found->second);
      }
    }
  }
  return shares;
}

// The tiles of one node, each with the worker whose share it lies in.
std::vector<LoweredTile> cut_node(const std::vector<TileAxis>& axes, u32 index, const DimShares& shares) {
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

// Tiles of one group have the same key.
i32 group_key(const LoweredTile& tile, const std::vector<TileAxis>& axes, bool only_resident) {
  if (only_resident && tile.home != kNoHome) return tile.home;
  // Readers of a range without a name know none of its borders.
  const bool range = !axes.empty() && axes[0].kind == TileAxis::Kind::kRange && !axes[0].dim.empty();
  return range ? tile.at[0] : 0;
}

}  // namespace

void leave_homes(const Graph& graph, const TilingTarget& target, Placement& placement) {
  for (const Node& node : graph.nodes()) {
    const Part& main = node.main_part();
    if (std::ranges::none_of(axes_of(node, target), &TileAxis::anywhere)) continue;
    for (const Field& field : main.op->fields)  // forgets the homes of its weights' rows
      if (field.is_weight() && field.weight(main.args.data()).data.exists())
        placement.weights.erase(graph.buffers()[field.weight(main.args.data()).data.buffer].name);
  }
}

Tiles cut_tiles(const Graph& graph, const Placement& placement, const TilingTarget& target) {
  Tiles tiles;
  for (u32 n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const DimShares shares = find_shares(graph, placement, node);
    const auto axes = axes_of(node, target);
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
