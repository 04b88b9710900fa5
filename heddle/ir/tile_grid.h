// The tiles of one call by number, for what runs an op by itself: range axes are cut in their preferred size, and the last
// axis counts fastest. The same tiles, in the same order, as default_tiles, unless more are wanted.
#pragma once

#include <span>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

class TileGrid {
 public:
  struct Axis {
    i32 extent = 1;  // elements, or indices
    i32 step = 1;    // of a tile; the last one ends at the extent
    u32 tiles = 1;
    i32 unit = 1;          // the step is a multiple of it
    bool is_range = true;  // two coordinates of a tile, else one
  };

  TileGrid() = default;
  explicit TileGrid(std::span<const TileAxis> axes);
  // Cuts ranges in half while there are fewer tiles than `wanted`, and tiles have more than `least` elements of the axes.
  void refine(i64 wanted, i64 least);

  std::span<const Axis> axes() const { return axes_; }
  i64 tiles() const { return tiles_; }
  TileCoord operator[](i64 number) const;

 private:
  std::vector<Axis> axes_;
  i64 tiles_ = 0;
};

}  // namespace heddle
