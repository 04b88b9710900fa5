// The gated delta rule of each head (Yang et al., 2024: "Gated Delta Networks"): a state S [K, V] goes through the positions with
//   error = v - exp(g) S'k,  S = exp(g) S + beta k error',  y = scale S'q
// Keys should be unit vectors, beta in [0, 2] and g at most 0; otherwise states may grow without bound.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/recurrence/delta_chunks.h"

namespace heddle {

struct GatedDeltaRule {
  Tensor q;         // [B, T, H, K]
  Tensor k;         // [B, T, H, K]
  Tensor v;         // [B, T, H, V]
  Tensor g;         // [B, T, H]: the logarithm of what stays of a state
  Tensor beta;      // [B, T, H]: how much of an error is written
  Tensor s0;        // optional [B, H, K, V]; zeros
  Tensor y;         // [B, T, H, V]
  Tensor last;      // f32 [B, H, K, V]: the state after all positions
  Tensor error;     // f32 [B, T, H, V]
  Tensor starts;    // f32 [B, H, C, V]: states before each chunk of 32 positions, one below the other
  float scale = 0;  // 0: 1 / sqrt(K)

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("q", s.q, "B, T, H, K");
    v.read("k", s.k, "B, T, H, K");
    v.read("v", s.v, "B, T, H, V");
    v.read("g", s.g, "B, T, H");
    v.read("beta", s.beta, "B, T, H");
    v.optional_read("s0", s.s0, "B, H, K, V");
    v.write("y", s.y, "B, T, H, V");
    v.write("last", s.last, "B, H, K, V", "f32");
    v.write("error", s.error, "B, T, H, V", "f32");
    v.write("starts", s.starts, "B, H, C, V", "f32");
    v.attribute("scale", s.scale);
  }
};

}  // namespace heddle
