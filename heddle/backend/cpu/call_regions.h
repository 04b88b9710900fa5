// Lists the memory that the tiles of a program may touch, for the checks of the reference executor.
#pragma once

#include <vector>

#include "heddle/ir/program/program.h"

namespace heddle {

// The regions that the tiles of each call access, including those of its prologue and epilogues.
class CallRegions {
 public:
  explicit CallRegions(const Program& program);
  void append(u32 call, const TileCoord& tile, std::vector<Region>& out) const;

 private:
  std::vector<Node> nodes_;
  std::vector<NodeRule> rules_;
};

}  // namespace heddle
