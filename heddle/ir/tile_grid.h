// The numbered tiles of one call. Range axes are cut in their preferred size, and the last axis counts fastest.
// Code that runs an op by itself may refine the grid.
#pragma once

#include <span>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

class TileGrid {
 public:
  struct Axis {
    i32 extent = 1;  // elements, or indices
    i32 step = 1;    // size in a tile; the last one ends at the extent
    u32 tiles = 1;
    i32 unit = 1;          // the step is a multiple of it
    bool is_range = true;  // two coordinates of a tile, else one
  };

  TileGrid() = default;
  explicit TileGrid(std::span<const TileAxis> axes);
  // Halves ranges as long as there are fewer tiles than `wanted` and tiles have more than `least` elements of
  // the axes.
  void refine(i64 wanted, i64 least);

  std::span<const Axis> axes() const { return axes_; }
  i64 tiles() const { return tiles_; }
  TileCoord operator[](i64 number) const;

 private:
  std::vector<Axis> axes_;
  i64 tiles_ = 0;
};

// All tiles of a grid, in order.
std::vector<TileCoord> default_tiles(std::span<const TileAxis> axes);

}  // namespace heddle
