// Checks that the tiles of a call partition its axes. The sum of the tiles' indicator functions follows from
// its corners: a box is +1 at corners with an even number of upper coordinates and -1 at the others, and two
// sums of boxes are equal exactly when their corners are. So the tiles cover the whole once when their
// corners cancel against the whole's. At the first corner that is left, the sum differs from 1 by the value
// of that corner.
#include <algorithm>
#include <array>

#include "heddle/ir/check/form.h"

namespace heddle::proof {
namespace {

using Point = std::array<i32, 4>;

struct Box {
  Point begin = {}, end = {1, 1, 1, 1};

  bool contains(const Point& point) const {
    for (size_t d = 0; d < point.size(); ++d)
      if (point[d] < begin[d] || point[d] >= end[d]) return false;
    return true;
  }
};

struct Corner {
  Point at;
  i32 sign;
};

Box box_of(std::span<const TileAxis> axes, const i32* tile) {
  Box box;
  int at = 0;
  for (size_t d = 0; d < axes.size(); ++d) {
    const bool range = axes[d].kind == TileAxis::Kind::kRange;
    box.begin[d] = tile[at];
    box.end[d] = range ? tile[at + 1] : tile[at] + 1;
    at += range ? 2 : 1;
  }
  return box;
}

void add_corners(const Box& box, size_t axes, i32 sign, std::vector<Corner>& corners) {
  for (u32 upper = 0; upper < (1u << axes); ++upper) {
    Corner corner{box.begin, sign};
    for (size_t d = 0; d < axes; ++d)
      if (upper >> d & 1) corner.at[d] = box.end[d], corner.sign = -corner.sign;
    corners.push_back(corner);
  }
}

// The first point where corners do not cancel, or null. Its sign is the sum at that point.
const Corner* first_left(std::vector<Corner>& corners) {
  std::sort(corners.begin(), corners.end(), [](const Corner& a, const Corner& b) { return a.at < b.at; });
  for (size_t i = 0; i < corners.size();) {
    size_t begin = i;
    i32 sum = 0;
    for (; i < corners.size() && corners[i].at == corners[begin].at; ++i) sum += corners[i].sign;
    corners[begin].sign = sum;
    if (sum != 0) return &corners[begin];
  }
  return nullptr;
}

void report(const Form& form, const CallForm& call, const Corner& left, Faults& faults) {
  const auto& axes = call.axes[call.node.main];
  TileCoord element;
  int at = 0;
  for (size_t d = 0; d < axes.size(); ++d) {
    element[at++] = left.at[d];
    if (axes[d].kind == TileAxis::Kind::kRange) element[at++] = left.at[d] + 1;
  }
  if (left.sign < 0)
    return faults.add(Rule::kTilesCover, FaultKind::kNotWritten, "{} [{}]: no instruction computes {}",
                      call.node.name, chain_name(call.node), tile_text(axes, element));
  std::vector<u32> both;
  for (u32 id : call.instructions)
    if (both.size() < 2 && box_of(axes, form.instruction(id).tile).contains(left.at)) both.push_back(id);
  faults.add(Rule::kTilesOnce, FaultKind::kComputedTwice, "{} and {} both compute {}", form.place(both[0]),
             form.place(both[1]), tile_text(axes, element));
}

}  // namespace

void check_tiles(const Form& form, Faults& faults) {
  std::vector<Corner> corners;
  for (const CallForm& call : form.calls) {
    const auto& axes = call.axes[call.node.main];
    corners.clear();
    Box whole;
    for (size_t d = 0; d < axes.size(); ++d) whole.end[d] = axes[d].extent;
    add_corners(whole, axes.size(), -1, corners);
    for (u32 id : call.instructions)
      add_corners(box_of(axes, form.instruction(id).tile), axes.size(), 1, corners);
    if (const Corner* left = first_left(corners)) report(form, call, *left, faults);
  }
}

}  // namespace heddle::proof
