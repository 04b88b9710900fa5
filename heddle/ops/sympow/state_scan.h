// States before each chunk from what each chunk adds: s_0 = s0, s_(g+1) = exp(l at the end of chunk g) s_g + u_g; `last` is
// the state after all. Rows of a head lie chunk by chunk, as mma_sympow writes them.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct StateScan {
  Tensor u;        // [B, H, chunks * N, E]
  Tensor l;        // optional f32 [B, T, H]: inclusive sums of log gates in each chunk
  Tensor s0;       // optional [B, H, N, E]; zeros
  Tensor s;        // [B, H, chunks * N, E]
  Tensor last;     // f32 [B, H, N, E]
  i32 chunks = 1;  // a head has so many
  i32 chunk = 0;   // positions of a chunk of l; 0: all

  i32 width() const { return u.size[2] / chunks; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("u", s.u, "B, H, C, E");
    v.optional_read("l", s.l, "B, T, H", "f32");
    v.optional_read("s0", s.s0, "B, H, N, E");
    v.write("s", s.s, "B, H, C, E");
    v.write("last", s.last, "B, H, N, E", "f32");
    v.attribute("chunks", s.chunks);
    v.attribute("chunk", s.chunk);
  }
};

}  // namespace heddle
