// The rules that rope and its gradient share. `from` is turned, `to` is what is written.
#pragma once

#include <vector>

#include "heddle/ir/rules.h"

namespace heddle {

inline void infer_turned_heads(const char* op, const char* name, const Tensor& from, const Tensor& cos,
                               const Tensor& sin) {
  require_rank(op, name, from, 4);
  require_float(op, name, from);
  require_rank(op, "cos", cos, 3);
  require_float(op, "cos", cos);
  require_float(op, "sin", sin);
  const i32 batch = from.size[0], angles = cos.size[0], turned = cos.last();
  require((angles == 1 || angles == batch) && cos.size[1] == from.size[2],
          "[{}] cos is {}, {} is {}; cos must have the angles of {} positions, once or for each of {}", op,
          shape_text(cos), name, shape_text(from), from.size[2], batch);
  require(turned > 0 && turned % 2 == 0 && turned <= from.last(),
          "[{}] cos is {}, {} is {}; cos must have an even number of elements, at most those of a head, {}",
          op, shape_text(cos), name, shape_text(from), from.last());
  require_shape(op, "sin", sin, {angles, cos.size[1], turned});
}

// Coordinates: batch, first position, position after the last. A tile has all heads of its positions.
inline std::vector<TileAxis> turned_heads_axes(const Tensor& from, const TilingTarget& target) {
  return {{.kind = TileAxis::Kind::kIndex, .extent = from.size[0]},
          {.extent = from.size[2], .preferred = target.gpu ? 4 : 16}};
}

inline void turned_heads_regions(const Tensor& from, const Tensor& cos, const Tensor& sin, const Tensor& to,
                                 const TileCoord& t, std::vector<Region>& out) {
  const std::array<i32, 2> batch{t[0], t[0] + 1}, positions{t[1], t[2]}, heads{0, from.size[1]};
  const i32 angles = cos.size[0] == 1 ? 0 : t[0];
  for (const Tensor* tensor : {&cos, &sin})
    out.push_back(
        part_of(*tensor, Access::kRead, {std::array{angles, angles + 1}, positions, {0, cos.last()}}));
  out.push_back(part_of(from, Access::kRead, {batch, heads, positions, {0, from.last()}}));
  out.push_back(part_of(to, Access::kWrite, {batch, heads, positions, {0, from.last()}}));
}

inline double turned_heads_flops(const Tensor& from, const TileCoord& t) {
  return 3.0 * (t[2] - t[1]) * from.size[1] * from.last();
}

// Calls f(first, second, angle_of_first, angle_of_second) for the places of each pair.
template <class F>
void each_turned_pair(const Tensor& from, const Tensor& cos, bool interleaved, F&& f) {
  const i64 dim = from.last(), turned = cos.last(), pairs = turned / 2;
  const i64 rows = i64(from.size[0]) * from.size[1] * from.size[2];
  for (i64 row = 0; row < rows; ++row) {
    const i64 position = row % from.size[2], batch = row / from.size[2] / from.size[1];
    const i64 angles = ((cos.size[0] == 1 ? 0 : batch) * from.size[2] + position) * turned;
    for (i64 i = 0; i < pairs; ++i) {
      const i64 a = interleaved ? 2 * i : i, b = interleaved ? a + 1 : i + pairs;
      f(size_t(row * dim + a), size_t(row * dim + b), size_t(angles + a), size_t(angles + b));
    }
  }
}

}  // namespace heddle
