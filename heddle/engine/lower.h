// The steps between a fused graph and its program. A *group* is the set of tiles of one call that signal the
// same counter: all of them, or those of one block of rows. If a call writes only rows that stay with their
// workers, a group has one worker's tiles.
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
  std::vector<std::vector<u32>> of_group;  // tiles of each group
  std::vector<i32> group_home;             // the worker that makes a group for itself alone, or kNoHome
};

// Removes from `placement` the homes of weights whose calls are cut without regard to them
// (TileAxis::anywhere).
void leave_homes(const Graph& graph, const TilingTarget& target, Placement& placement);

// Cuts every node into tiles: rows of weights and of the residual at the borders of homes, the rest as the
// ops prefer.
Tiles cut_tiles(const Graph& graph, const Placement& placement, const TilingTarget& target);

// The reason that one group must come after another. Waits for data come first, because they imply most of
// the others.
enum class NeedKind : u8 {
  kData,   // RAW, WAW
  kSpace,  // WAR
};

struct Need {
  u32 group;
  NeedKind kind;
  bool previous;  // the group of the previous step
};

struct Hazards {
  std::vector<std::vector<Need>> needs;            // by group, latest first
  std::map<u32, std::vector<Need>> needs_of_tile;  // for a tile that needs less than its group
  std::vector<std::vector<u32>> after;             // by node: nodes of the same step that it must follow

  const std::vector<Need>& of(u32 tile, u32 group) const {
    const auto own = needs_of_tile.find(tile);
    return own == needs_of_tile.end() ? needs[group] : own->second;
  }
};

// Finds dependencies from reads and writes, by byte interval, within one step and from one step to the next.
Hazards find_hazards(const Graph& graph, const ArenaPlan& arena, const Tiles& tiles);

// A tile waits for all tiles of a group.
struct EdgeWait {
  u32 group;
  bool previous;
  bool operator==(const EdgeWait&) const = default;
};

struct Edges {
  std::vector<std::vector<EdgeWait>> waits;  // by tile
  std::vector<bool> waited;                  // by group: some tile waits for it
  std::vector<EdgeKind> kind;                // by group
};

// Finds few waits that give every tile what it needs, beyond what its worker knows already.
Edges find_edges(const Tiles& tiles, const Hazards& hazards, const Schedule& schedule);

}  // namespace heddle
