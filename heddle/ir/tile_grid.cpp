#include "heddle/ir/tile_grid.h"

#include <algorithm>

namespace heddle {

namespace {

void cut(TileGrid::Axis& axis, i64 wanted) {
  const i64 step = (wanted + axis.unit - 1) / axis.unit * axis.unit;
  axis.step = i32(std::min<i64>(step, std::max(axis.extent, 1)));
  axis.tiles = u32((i64(axis.extent) + axis.step - 1) / axis.step);
}

}  // namespace

TileGrid::TileGrid(std::span<const TileAxis> axes) : tiles_(1) {
  for (const TileAxis& axis : axes) {
    const bool is_range = axis.kind == TileAxis::Kind::kRange;
    Axis made{.extent = axis.extent, .unit = is_range ? axis.unit : 1, .is_range = is_range};
    cut(made, !is_range ? 1 : axis.preferred > 0 ? axis.preferred : axis.extent);
    tiles_ *= made.tiles;
    axes_.push_back(made);
  }
}

void TileGrid::refine(i64 wanted, i64 least) {
  while (tiles_ < wanted) {
    i64 elements = 1;
    Axis* widest = nullptr;  // in units; the first of equal ones
    for (Axis& axis : axes_) {
      if (!axis.is_range) continue;
      elements *= axis.step;
      const i64 units = (i64(axis.step) + axis.unit - 1) / axis.unit;
      if (units > 1 && (!widest || units > (i64(widest->step) + widest->unit - 1) / widest->unit))
        widest = &axis;
    }
    if (!widest || elements <= least) return;
    tiles_ /= widest->tiles;
    cut(*widest, (i64(widest->step) + 1) / 2);
    tiles_ *= widest->tiles;
  }
}

TileCoord TileGrid::operator[](i64 number) const {
  TileCoord tile;
  int at = 0;
  for (const Axis& axis : axes_) at += axis.is_range ? 2 : 1;
  for (size_t a = axes_.size(); a-- > 0;) {
    const Axis& axis = axes_[a];
    const i32 begin = i32(number % axis.tiles) * axis.step;
    number /= axis.tiles;
    if (axis.is_range) tile[--at] = begin + std::min(axis.step, axis.extent - begin);
    tile[--at] = begin;
  }
  return tile;
}

std::vector<TileCoord> default_tiles(std::span<const TileAxis> axes) {
  const TileGrid grid(axes);
  std::vector<TileCoord> tiles(size_t(grid.tiles()));
  for (size_t i = 0; i < tiles.size(); ++i) tiles[i] = grid[i64(i)];
  return tiles;
}

}  // namespace heddle
