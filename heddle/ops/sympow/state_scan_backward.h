// The gradient of state_scan: r_chunks = dlast, r_g = ds_g + decay_g r_(g+1), du_g = r_(g+1), ds0 = r_0. part[g, p] is the
// part of rows [64 p, 64 p + 64) in <s_g, r_(g+1)>, from which state_scan_gates makes dl.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct StateScanBackward {
  Tensor s;        // [B, H, chunks * N, E]
  Tensor l;        // optional f32 [B, T, H]
  Tensor ds;       // [B, H, chunks * N, E]
  Tensor dlast;    // f32 [B, H, N, E]
  Tensor du;       // [B, H, chunks * N, E]
  Tensor ds0;      // f32 [B, H, N, E]
  Tensor part;     // f32 [B, H, chunks, P]
  i32 chunks = 1;  // chunks of a sequence
  i32 chunk = 0;   // positions of a chunk of l; 0: all

  i32 width() const { return s.size[2] / chunks; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("s", s.s, "B, H, C, E");
    v.optional_read("l", s.l, "B, T, H", "f32");
    v.read("ds", s.ds, "B, H, C, E");
    v.read("dlast", s.dlast, "B, H, N, E", "f32");
    v.write("du", s.du, "B, H, C, E");
    v.write("ds0", s.ds0, "B, H, N, E", "f32");
    v.write("part", s.part, "B, H, G, P", "f32");
    v.attribute("chunks", s.chunks);
    v.attribute("chunk", s.chunk);
  }
};

}  // namespace heddle
