// Shape rules, tiles and decays of state_scan and its gradient.
#pragma once

#include <vector>

#include "heddle/ops/sympow/power_attention_reference.h"

namespace heddle {

constexpr i32 kStateRows = 64;  // a tile has so many at most, and so has a part of a sum

// Requires states [B, H, chunks * N, E] and, where it is given, l with as many chunks.
template <class Args>
void require_scan(const char* op, const char* name, const Args& a, const Tensor& states) {
  require_rank(op, name, states, 4);
  require_float(op, name, states);
  require(a.chunks > 0 && states.size[2] % a.chunks == 0,
          "[{}] {} has {} rows in each head, chunks = {}; each chunk must have as many", op, name,
          states.size[2], a.chunks);
  require(a.chunk >= 0, "[{}] chunk = {}; must be a number of positions, or 0 for all", op, a.chunk);
  if (a.l.rank == 0) return;
  require_rank(op, "l", a.l, 3);
  require_shape(op, "l", a.l, {states.size[0], a.l.size[1], states.size[1]});
  const i32 chunks = ChunkTiles(a.l.size[1], a.chunk).chunks();
  require(chunks == a.chunks, "[{}] l has {} positions, {} chunks; must have {} chunks", op, a.l.size[1],
          chunks, a.chunks);
}

inline i32 state_parts(i32 width) {
  return (width - 1) / kStateRows + 1;
}

// Axes: heads of all batches, parts of a state's rows.
inline std::vector<TileAxis> state_axes(const Tensor& states, i32 width) {
  return {{.kind = TileAxis::Kind::kIndex, .extent = states.size[0] * states.size[1]},
          {.kind = TileAxis::Kind::kIndex, .extent = state_parts(width)}};
}

// The regions of a tile of state_axes.
class StateRegions {
 public:
  StateRegions(const Tensor& states, i32 width, const TileCoord& t, std::vector<Region>& out)
      : b_(t[0] / states.size[1]), h_(t[0] % states.size[1]), part_(t[1]), width_(width), out_(out) {}

  void add(const Tensor& tensor, Access access) const {
    if (tensor.rank == 0) return;
    const i32 first = part_ * kStateRows, last = std::min(first + kStateRows, width_);
    for (i32 begin = 0; begin < tensor.size[2]; begin += width_)
      out_.push_back(part_of(
          tensor, access, {{b_, b_ + 1}, {h_, h_ + 1}, {begin + first, begin + last}, {0, tensor.size[3]}}));
  }
  void add_part(const Tensor& part) const {
    out_.push_back(
        part_of(part, Access::kWrite, {{b_, b_ + 1}, {h_, h_ + 1}, {0, part.size[2]}, {part_, part_ + 1}}));
  }
  void add_gates(const Tensor& l) const {
    if (l.rank > 0) out_.push_back(part_of(l, Access::kRead, {{b_, b_ + 1}, {0, l.size[1]}, {h_, h_ + 1}}));
  }

 private:
  i32 b_, h_, part_, width_;
  std::vector<Region>& out_;
};

// exp(l at the end of chunk g), in fp64.
class ChunkDecays {
 public:
  ChunkDecays(const Tensor& l, i32 chunk, Values& values) : l_(l), tiles_(l.size[1], chunk) {
    if (l.rank > 0) all_ = values.read(l);
  }
  // Where [B, T, H] has the end of a chunk.
  size_t end(i32 b, i32 h, i32 g) const {
    const i32 t = tiles_.chunk_end(g) - 1;
    return (size_t(b) * size_t(l_.size[1]) + size_t(t)) * size_t(l_.size[2]) + size_t(h);
  }
  double at(i32 b, i32 h, i32 g) const { return all_.empty() ? 1 : std::exp(all_[end(b, h, g)]); }

 private:
  Tensor l_;
  ChunkTiles tiles_;
  std::vector<double> all_;
};

}  // namespace heddle
