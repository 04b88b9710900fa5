// Power attention in fp64, and what the shape rules of its ops share.
#pragma once

#include <cmath>
#include <numeric>
#include <string>

#include "heddle/ops/sympow/sympow_reference.h"

namespace heddle {

// Requires q, k, v and, where they are given, l and past to fit each other and the attributes. True: see `past`.
template <class Args>
void require_power_attention(const char* op, const Args& a) {
  require_rank(op, "q", a.q, 4);
  require_rank(op, "v", a.v, 4);
  require_heads(op, "q", a.q, a.q, a.q.size[3]);
  require_heads(op, "k", a.k, a.q, a.q.size[3]);
  require_heads(op, "v", a.v, a.q, a.v.size[3]);
  require(a.power == 2 || a.power == 4, "[{}] power = {}; must be 2 or 4", op, a.power);
  require(a.chunk >= 0, "[{}] chunk = {}; must be a number of positions, or 0 for all", op, a.chunk);
  if (a.l.rank > 0) require_rows(op, "l", a.l, a.q);
}
// Requires the inputs of state_values and its gradient. Returns the columns of a state: those of v, and 8 for the total.
template <class Args>
i32 require_state_values(const char* op, const Args& a) {
  constexpr i32 kTotalColumns = 8, kMostColumns = 1 << 30;
  require_rank(op, "v", a.v, 4);
  require_heads(op, "v", a.v, a.v, a.v.size[3]);
  require(a.v.size[3] <= kMostColumns, "[{}] v has rows of {}; must have at most {}", op, a.v.size[3],
          kMostColumns);
  if (a.l.rank > 0) require_rows(op, "l", a.l, a.v);
  require(a.chunk >= 0, "[{}] chunk = {}; must be a number of positions, or 0 for all", op, a.chunk);
  return a.v.size[3] + (a.normalise ? kTotalColumns : 0);
}
template <class Args>
void require_past(const char* op, const Args& a, i32 columns) {
  if (a.past.rank == 0) return;
  require_rank(op, "past", a.past, 4);
  const i64 least = i64(columns) + (a.normalise ? 1 : 0);
  require(a.past.size[3] >= least, "[{}] past has rows of {}; must have at least {}", op, a.past.size[3],
          least);
  require_heads(op, "past", a.past, a.y, a.past.size[3]);
}
// Requires the outputs and their gradients, which the backward ops are given, to fit v.
template <class Args>
void require_given(const char* op, const Args& a, const Tensor& v) {
  for (auto [name, tensor] : {std::pair{"y", &a.y}, {"dy", &a.dy}})
    require_heads(op, name, *tensor, v, v.size[3]);
  for (auto [name, tensor] : {std::pair{"total", &a.total}, {"dtotal", &a.dtotal}})
    require_rows(op, name, *tensor, v);
}

// The sums of log gates, and what follows from them.
class Decays {
 public:
  Decays(const Tensor& l, const Tensor& y, Values& values) : sizes_(y) {
    if (l.rank > 0) all_ = values.read(l);
  }
  // Where [B, T, H] has its element.
  size_t at(i32 b, i32 t, i32 h) const {
    return (size_t(b) * size_t(sizes_.size[1]) + size_t(t)) * size_t(sizes_.size[2]) + size_t(h);
  }
  double sum(i32 b, i32 t, i32 h) const { return all_.empty() ? 0 : all_[at(b, t, h)]; }
  double from(i32 b, i32 h, i32 i, i32 j) const { return std::exp(sum(b, i, h) - sum(b, j, h)); }
  double past(i32 b, i32 h, i32 i, double scale, i32 power) const {
    return std::exp(sum(b, i, h)) * std::pow(scale, power);
  }

 private:
  Tensor sizes_;
  std::vector<double> all_;
};

// The gradient of a row's sums: of element e of the weighted values dy[e] * inverse, of the total `total`.
struct RowGradient {
  double inverse, total;
};

inline double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

inline RowGradient row_gradient(bool normalise, double eps, double total, double dtotal,
                                std::span<const double> y, std::span<const double> dy) {
  if (!normalise) return {1, dtotal};
  const double inverse = 1 / (total + eps);
  return {inverse, dtotal - dot(dy, y) * inverse};
}

// Calls use(b, h, i, j) for the positions that meet: j <= i of one chunk.
template <class Use>
void for_pairs(const Tensor& q, const ChunkTiles& tiles, Use&& use) {
  for (i32 b = 0; b < q.size[0]; ++b)
    for (i32 h = 0; h < q.size[2]; ++h)
      for (i32 i = 0; i < q.size[1]; ++i)
        for (i32 j = tiles.chunk_begin(i / tiles.chunk); j <= i; ++j) use(b, h, i, j);
}

// Values of a backward op in fp64, and the gradient of each pair of positions.
template <class Args>
struct PairGradients {
  const Args& a;
  std::vector<double> q, k, v, y, total, dy, dtotal;
  Decays decays;

  PairGradients(const Args& args, Values& values)
      : a(args),
        q(values.read(a.q)),
        k(values.read(a.k)),
        v(values.read(a.v)),
        y(values.read(a.y)),
        total(values.read(a.total)),
        dy(values.read(a.dy)),
        dtotal(values.read(a.dtotal)),
        decays(a.l, a.y, values) {}

  RowGradient row(i32 b, i32 i, i32 h) {
    const size_t at = decays.at(b, i, h);
    return row_gradient(a.normalise, double(a.eps), total[at], dtotal[at], head_row(y, a.y, b, i, h),
                        head_row(dy, a.dy, b, i, h));
  }
  struct Pair {
    double weight;  // a_ij
    double score;   // gradient of scale <q_i, k_j>
    double gate;    // gradient of l_i, and less that of l_j
  };
  Pair of(i32 b, i32 h, i32 i, i32 j) {
    const double s = double(a.scale) * dot(head_row(q, a.q, b, i, h), head_row(k, a.k, b, j, h));
    const double decay = decays.from(b, h, i, j), weight = decay * std::pow(s, a.power);
    const RowGradient given = row(b, i, h);
    const double d =
        dot(head_row(dy, a.dy, b, i, h), head_row(v, a.v, b, j, h)) * given.inverse + given.total;
    return {weight, d * decay * a.power * std::pow(s, a.power - 1), d * weight};
  }
};

// The memory and the regions that tiles (head, tile of rows) have in common.
inline std::vector<TileAxis> head_axes(const Tensor& q, const ChunkTiles& tiles) {
  return {{.kind = TileAxis::Kind::kIndex, .extent = q.size[0] * q.size[2]},
          {.kind = TileAxis::Kind::kIndex, .extent = tiles.tiles()}};
}

class HeadRegions {
 public:
  HeadRegions(const Tensor& q, const TileCoord& t, std::vector<Region>& out)
      : b_(t[0] / q.size[2]), h_(t[0] % q.size[2]), out_(out) {}

  // Rows of a tensor [B, T, H, ...] that may be left out.
  void add(const Tensor& tensor, Access access, i32 begin, i32 end) const {
    if (tensor.rank == 4)
      out_.push_back(
          part_of(tensor, access, {{b_, b_ + 1}, {begin, end}, {h_, h_ + 1}, {0, tensor.size[3]}}));
    else if (tensor.rank == 3)
      out_.push_back(part_of(tensor, access, {{b_, b_ + 1}, {begin, end}, {h_, h_ + 1}}));
  }

 private:
  i32 b_, h_;
  std::vector<Region>& out_;
};

}  // namespace heddle
