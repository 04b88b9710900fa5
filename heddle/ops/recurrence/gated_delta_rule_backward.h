// The gradient of gated_delta_rule, chunk by chunk from the last, with the gradient of the state in `ds0`. Rows t of a chunk, whose
// decays up to t multiply to D_t, have gradients z_t of their errors and, with S before the chunk and G after it,
//   x_t = D/D_t G'k_t + sum_(s >= t) D_s/D_t (q_s k_t) dy_s - sum_(s > t) D_s/D_t (k_s k_t) z_s,  z_t = beta_t x_t + derror_t
// by substitution from the last row. All other gradients are sums of such products, and no state inside a chunk is made again.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/recurrence/delta_chunks.h"

namespace heddle {

struct GatedDeltaRuleBackward {
  Tensor q;         // [B, T, H, K]
  Tensor k;         // [B, T, H, K]
  Tensor v;         // [B, T, H, V]
  Tensor g;         // [B, T, H]
  Tensor beta;      // [B, T, H]
  Tensor s0;        // optional [B, H, K, V]
  Tensor last;      // f32 [B, H, K, V]
  Tensor error;     // f32 [B, T, H, V]
  Tensor starts;    // f32 [B, H, C, V]
  Tensor dy;        // [B, T, H, V]
  Tensor dlast;     // optional f32 [B, H, K, V]
  Tensor derror;    // optional f32 [B, T, H, V]
  Tensor dstarts;   // optional f32 [B, H, C, V]
  Tensor dq;        // [B, T, H, K]
  Tensor dk;        // [B, T, H, K]
  Tensor dv;        // [B, T, H, V]
  Tensor dg;        // f32 [B, T, H]
  Tensor dbeta;     // f32 [B, T, H]
  Tensor ds0;       // f32 [B, H, K, V]
  float scale = 0;  // 0: 1 / sqrt(K)

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("q", s.q, "B, T, H, K");
    v.read("k", s.k, "B, T, H, K");
    v.read("v", s.v, "B, T, H, V");
    v.read("g", s.g, "B, T, H");
    v.read("beta", s.beta, "B, T, H");
    v.optional_read("s0", s.s0, "B, H, K, V");
    v.read("last", s.last, "B, H, K, V", "f32");
    v.read("error", s.error, "B, T, H, V", "f32");
    v.read("starts", s.starts, "B, H, C, V", "f32");
    v.read("dy", s.dy, "B, T, H, V");
    v.optional_read("dlast", s.dlast, "B, H, K, V", "f32");
    v.optional_read("derror", s.derror, "B, T, H, V", "f32");
    v.optional_read("dstarts", s.dstarts, "B, H, C, V", "f32");
    v.write("dq", s.dq, "B, T, H, K");
    v.write("dk", s.dk, "B, T, H, K");
    v.write("dv", s.dv, "B, T, H, V");
    v.write("dg", s.dg, "B, T, H", "f32");
    v.write("dbeta", s.dbeta, "B, T, H", "f32");
    v.write("ds0", s.ds0, "B, H, K, V", "f32");
    v.attribute("scale", s.scale);
  }
};

}  // namespace heddle
