// Orders of tiles, as functions of integers: which tile a worker takes at its turn. Each tile comes once, on any grid, and no order of
// a sum depends on how many workers there are.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle::tile {

struct TileAt {
  i32 row, col;
};

// Groups of `height` rows of tiles; in a group column after column, and of each column all rows of the group: the tiles that run
// together share few rows and columns, which stay in L2.
struct GroupedRaster {
  i32 rows, cols, height;

  constexpr i32 tiles() const { return rows * cols; }
  constexpr TileAt at(i32 number) const {
    const i32 group = number / (height * cols), first = group * height;
    const i32 here = rows - first < height ? rows - first : height, inside = number - group * height * cols;
    return {first + inside % here, inside / here};
  }
};

struct HeadTile {
  i32 head, row;
};

// Tiles of rows of many heads, the heaviest first: with a causal mask the last rows see the most keys. Heads come in groups whose
// keys and values fit L2.
struct HeavyFirst {
  i32 rows, heads, group;
  bool last_row_first = true;

  constexpr i32 tiles() const { return rows * heads; }
  constexpr HeadTile at(i32 number) const {
    const i32 first = number / (rows * group) * group, inside = number % (rows * group);
    const i32 here = heads - first < group ? heads - first : group, row = inside / here;
    return {first + inside % here, last_row_first ? rows - 1 - row : row};
  }
};

}  // namespace heddle::tile
