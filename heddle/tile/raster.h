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

// Blocks that each meet all steps and add to what belongs to a step, in one order always: block b begins `apart` steps after block
// b - 1, so that a step is met by one block after the other and hardly any waits. `turn` says how many blocks meet the step before.
// All blocks run at once. Block b at its time t waits only for blocks that are at an earlier time, or at the same time and before
// b: nothing waits in a ring.
struct OrderedRing {
  i32 blocks, steps, apart = 2;

  constexpr i32 step(i32 block, i32 time) const { return (apart * block + time) % steps; }
  constexpr i32 time(i32 block, i32 step) const {
    const i32 late = (step - apart * block) % steps;
    return late < 0 ? late + steps : late;
  }
  constexpr i32 turn(i32 block, i32 step) const {
    const i32 mine = time(block, step);
    i32 before = 0;
    for (i32 b = 0; b < blocks; ++b) {
      const i32 theirs = time(b, step);
      before += theirs < mine || (theirs == mine && b < block) ? 1 : 0;
    }
    return before;
  }
};

// A ring under a causal mask: block b of keys meets the steps from apart * b on, in ascending order. The last block meets a step
// first: blocks wait for later ones only, which a launch begins first.
struct CausalRing {
  i32 blocks, steps, apart = 2;

  constexpr i32 count(i32 block) const { return apart * block < steps ? steps - apart * block : 0; }
  constexpr i32 step(i32 block, i32 time) const { return apart * block + time; }
  // The blocks from `block` + 1 to the last that meets the step.
  constexpr i32 turn(i32 block, i32 step) const {
    const i32 last = step / apart < blocks ? step / apart : blocks - 1;
    return last - block;
  }
};

struct Range {
  i32 begin, end;
};
// Part `part` of `count` things, as even as can be.
constexpr Range share(i32 count, i32 part, i32 parts) {
  return {i32(i64(count) * part / parts), i32(i64(count) * (part + 1) / parts)};
}

// A worker's piece of one tile: some of the steps of its sum.
struct Piece {
  i32 tile;
  Range steps;
  i32 number;  // among the pieces of the tile: their sums are added in this order
};

// stream-K: all steps of all tiles in one line, cut into `parts` runs of the same length, at most as many as there are steps. `parts`
// follows from the shape alone, because it decides how sums are cut.
struct StreamK {
  i32 tiles, steps, parts;

  constexpr Range range(i32 part) const { return share(tiles * steps, part, parts); }
  // The piece of a part that begins at `at`, which lies in its range; the next one begins at at + its length.
  constexpr Piece piece(i32 part, i32 at) const {
    const i32 tile = at / steps, begin = at - tile * steps, left = range(part).end - tile * steps;
    return {tile, {begin, left < steps ? left : steps}, part - part_at(tile * steps)};
  }
  constexpr i32 pieces(i32 tile) const { return part_at((tile + 1) * steps - 1) - part_at(tile * steps) + 1; }

 private:
  // The part whose range has `at`.
  constexpr i32 part_at(i32 at) const { return i32(((i64(at) + 1) * parts - 1) / (i64(tiles) * steps)); }
};

}  // namespace heddle::tile
