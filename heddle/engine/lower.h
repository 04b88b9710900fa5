// The steps between a fused graph and its program. A *group* is the set of tiles of one call that share a
// counter: all of them, or those of one block of rows; of one worker where a call writes only rows that stay there.
#pragma once

#include <map>
#include <vector>

#include "heddle/engine/arena.h"
#include "heddle/engine/placement.h"
#include "heddle/schedule/schedule.h"

namespace heddle {

struct LoweredTile {
  u32 node = 0;
  u32 group = 0;
  i32 home = kNoHome;
  TileCoord at;
};

struct Tiles {
  std::vector<LoweredTile> all;            // node by node
  std::vector<u32> group_node;             // by group
  std::vector<std::vector<u32>> of_group;  // tiles of a group
  std::vector<i32> group_home;  // the worker of a group that one worker makes for itself, or kNoHome
};

// Takes from `placement` the homes of weights whose calls are cut elsewhere (TileAxis::anywhere).
void leave_homes(const Graph& graph, const TilingTarget& target, Placement& placement);

// Cuts every node in tiles: rows of weights and of the residual at the borders of homes, the rest as the
// ops prefer.
Tiles cut_tiles(const Graph& graph, const Placement& placement, const TilingTarget& target);

// Why one group must come after another. Waits for data come first: they imply most of the others.
enum class NeedKind : u8 {
  kData,   // RAW, WAW
  kSpace,  // WAR
};

struct Need {
  u32 group;
  NeedKind kind;
  bool previous;  // the group of the step before
};

struct Hazards {
  std::vector<std::vector<Need>> needs;            // by group, latest first
  std::map<u32, std::vector<Need>> needs_of_tile;  // of a tile that needs less than its group
  std::vector<std::vector<u32>> after;             // by node: nodes of the same step it must follow

  const std::vector<Need>& of(u32 tile, u32 group) const {
    const auto own = needs_of_tile.find(tile);
    return own == needs_of_tile.end() ? needs[group] : own->second;
  }
};

// Dependencies from reads and writes, by byte interval, of one step and across the border between two.
Hazards find_hazards(const Graph& graph, const ArenaPlan& arena, const Tiles& tiles);

// A tile waits for all tiles of a group.
struct EdgeWait {
  u32 group;
  bool previous;
  bool operator==(const EdgeWait&) const = default;
};

struct Edges {
  std::vector<std::vector<EdgeWait>> waits;  // by tile
  std::vector<bool> waited;                  // by group: somebody waits for it
  std::vector<EdgeKind> kind;                // by group
};

// The fewest waits found that give every tile what it needs, given what its worker knows already.
Edges find_edges(const Tiles& tiles, const Hazards& hazards, const Schedule& schedule);

}  // namespace heddle
