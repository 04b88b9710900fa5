// Shape rules of gated_delta_rule and its gradient, and the rule in fp64.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "heddle/ir/rules.h"
#include "heddle/ops/recurrence/delta_chunks.h"

namespace heddle {

// Requires q, k, v, g and beta of the same positions and heads.
template <class Args>
void require_delta(const char* op, const Args& a) {
  require_rank(op, "q", a.q, 4);
  require_rank(op, "v", a.v, 4);
  const auto* size = a.q.size;
  constexpr i32 kMost = std::numeric_limits<i32>::max();
  require(double(size[0]) * size[2] <= kMost && (double(size[1]) + kDeltaChunk) * size[3] <= kMost,
          "[{}] q is {} x {} x {} x {}; batch * heads and positions * elements must be at most {}", op,
          size[0], size[1], size[2], size[3], kMost);
  require_shape(op, "k", a.k, {size[0], size[1], size[2], size[3]});
  require_shape(op, "v", a.v, {size[0], size[1], size[2], a.v.size[3]});
  for (auto [name, tensor] : {std::pair{"g", &a.g}, {"beta", &a.beta}})
    require_shape(op, name, *tensor, {size[0], size[1], size[2]});
  for (auto [name, tensor] : {std::pair{"q", &a.q}, {"k", &a.k}, {"v", &a.v}, {"g", &a.g}, {"beta", &a.beta}})
    require_float(op, name, *tensor);
  if (a.s0.rank > 0) {
    require_shape(op, "s0", a.s0, {size[0], size[2], size[3], a.v.size[3]});
    require_float(op, "s0", a.s0);
  }
}

inline float delta_scale(float scale, i32 dim) {
  return scale == 0.0f ? 1.0f / std::sqrt(float(dim)) : scale;
}

// The values of one head of all positions.
struct DeltaHead {
  i32 batch, head, heads, positions;

  size_t at(i32 p) const {
    return (size_t(batch) * size_t(positions) + size_t(p)) * size_t(heads) + size_t(head);
  }
  size_t state() const { return size_t(batch) * size_t(heads) + size_t(head); }
  // Row p of a tensor [B, T, H, columns].
  template <class Values>
  auto row(Values& values, i32 p, i32 columns) const {
    return std::span(values).subspan(at(p) * size_t(columns), size_t(columns));
  }
};

template <class F>
void for_each_delta_head(const Tensor& q, F&& f) {
  for (i32 b = 0; b < q.size[0]; ++b)
    for (i32 h = 0; h < q.size[2]; ++h) f(DeltaHead{b, h, q.size[2], q.size[1]});
}

}  // namespace heddle
