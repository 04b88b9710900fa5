// The steps between a fused graph and its program. A *group* is the set of tiles of one call that share a
// counter: all of them, or those of one block of rows; where clusters carry edges, of one head; of one worker
// where a call writes only rows that stay there.
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
// ops prefer. Where there are clusters, the splits of one head are tiles of one cluster.
Tiles cut_tiles(const Graph& graph, const Placement& placement, const TilingTarget& target);

// Leaves those buffers tagged that a worker can take whole, with one look at each word: made by one call, a run of bytes
// a tile, and read whole by every tile that reads them. Edges of the others are counted.
void keep_whole_tagged(Graph& graph, const Tiles& tiles);

// Why one group must come after another.
enum class NeedKind : u8 {
  kTagged,   // reads a tagged buffer: needs the tagged words themselves
  kVisible,  // RAW or WAW through memory
  kDone,     // WAR
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

// Tiles without a home whose inputs are all made in one cluster get a home there.
void settle_in_clusters(Tiles& tiles, const Hazards& hazards, const Topology& topology);

// Waits of one tile, and the kinds of its group's signal.
struct EdgeWait {
  u32 group;
  EdgeKind kind;
  bool previous;
};

struct Edges {
  std::vector<std::vector<EdgeWait>> waits;  // by tile
  std::vector<bool> waited;                  // by group: somebody waits for it
  std::vector<EdgeKind> signal;              // by group
};

// The fewest waits found that give every tile what it needs, given what its worker knows already.
Edges find_edges(const Graph& graph, const Tiles& tiles, const Hazards& hazards, const Schedule& schedule,
                 const Topology& topology);

}  // namespace heddle
