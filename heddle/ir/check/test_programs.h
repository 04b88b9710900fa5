// A hand-written decoder of one layer, for tests. It has every kind of edge, buffer and home.
#pragma once

#include "heddle/ir/check/check_with.h"
#include "heddle/ir/check/test_ops.h"

namespace heddle::proof {

// Workers 0-3 share the matrices, 4 and 5 read x as well, 6 appends to the pages, 7 looks up the token, 8
// computes attention and 9 idles.
struct Decoder {
  Builder builder{10};
  Tensor tokens, out, x, q, pages, a, h, hb, mid, logits, p, aside;
  u32 look_up, dot_q, append, attend, dot_h, norm, dot_mid, down, sample, probe, probe_aside;
  u32 c_x, c_q, c_append, c_a, c_hb, c_mid, c_logits, c_sample, c_p, c_aside;
  u32 c_h[4];

  Decoder() {
    add_buffers();
    add_calls();
    c_x = builder.counter(), c_q = builder.counter(), c_append = builder.counter(), c_a = builder.counter();
    for (u32& counter : c_h) counter = builder.counter();
    c_hb = builder.counter(), c_mid = builder.counter(), c_logits = builder.counter();
    c_sample = builder.counter(), c_p = builder.counter(), c_aside = builder.counter();
    add_instructions();
  }

  Program finish() { return builder.finish(); }

 private:
  void add_buffers() {
    tokens = builder.tensor("tokens", BufferKind::kStepDevice, DType::kI32, {1});
    out = builder.tensor("out", BufferKind::kOutput, DType::kI32, {1});
    x = builder.activation("x", {1, 64});
    q = builder.activation("q", {1, 64});
    pages = builder.tensor("pages", BufferKind::kPages, DType::kF32, {32, 64});
    a = builder.activation("a", {1, 64}, 0);
    h = builder.activation("h", {1, 64});
    hb = builder.activation("hb", {1, 64});
    mid = builder.activation("mid", {1, 64}, 256);
    logits = builder.activation("logits", {1, 64}, 0);  // shares the bytes of a
    p = builder.activation("p", {1, 64});
    aside = builder.activation("aside", {1, 64});
    Program& program = builder.program();
    program.buffers[h.buffer].info.resident = true;
    for (u32 w = 0; w < 4; ++w)
      program.homes.push_back({.buffer = h.buffer, .begin = 64 * w, .end = 64 * w + 64, .worker = w});
    program.topology.ring_bytes = 4096;
    program.topology.worker_memory = 4096 + 64 + 64;  // ring, resident rows, scratch
  }

  void add_calls() {
    const auto square = [&](const char* name) { return builder.weight(name, 64, 64); };
    look_up = builder.call("look_up", "embed", TestLookUp{tokens, builder.weight("table", 32, 64), x});
    dot_q = builder.call("dot", "qkv", TestDot{x, square("wq"), {}, q});
    append = builder.call("scatter", "append", TestScatter{q, pages});
    attend = builder.call("attend", "attention", TestAttend{q, pages, a});
    dot_h = builder.call("dot", "o_proj", TestDot{a, square("wo"), {}, h});
    norm = builder.call("map", "norm", TestMap{h, {}, hb});
    dot_mid = builder.call("dot", "up", TestDot{hb, square("wu"), {}, mid});
    const Weight wd = square("wd");
    down = builder.call("dot", "down", TestDot{mid, wd, h, logits});
    sample = builder.call("sample", "sampler", TestSample{logits, tokens, out});
    probe = builder.call("map", "probe", TestMap{x, {}, p});
    probe_aside = builder.call("map", "aside", TestMap{p, {}, aside});
    for (u32 w = 0; w < 4; ++w)  // one panel each: 16 rows of 64 bf16
      builder.program().homes.push_back(
          {.buffer = wd.data.buffer, .begin = 2048 * w, .end = 2048 * w + 2048, .worker = w});
  }

  void add_instructions() {
    const TileCoord whole{{0, 1, 0, 64}};
    builder.add(7, look_up, {{0, 1}}).wait(c_sample, EdgeKind::kCounted, true).signal(c_x);
    each([&](u32 w, TileCoord tile) { builder.add(w, dot_q, tile).wait(c_x).signal(c_q); });
    builder.add(6, append, {{0, 1}}).wait(c_q).signal(c_append);
    builder.add(8, attend, {{0, 1}}).wait(c_q).signal(c_a);
    builder.add(5, probe, whole).wait(c_x).signal(c_p);
    builder.add(4, probe_aside, whole).wait(c_p).signal(c_aside);
    each([&](u32 w, TileCoord tile) {
      builder.add(w, dot_h, tile).wait(c_a).signal(c_h[w], EdgeKind::kInSm);
    });
    each([&](u32 w, TileCoord tile) {
      builder.add(w, norm, tile).wait(c_h[w], EdgeKind::kInSm).signal(c_hb);
    });
    each([&](u32 w, TileCoord tile) { builder.add(w, dot_mid, tile).wait(c_hb).signal(c_mid); });
    each([&](u32 w, TileCoord tile) { builder.add(w, down, tile).wait(c_mid).signal(c_logits); });
    builder.add(0, sample, {{0, 1}}).wait(c_logits).wait(c_append).wait(c_aside).signal(c_sample);
  }

  template <class F>
  void each(F&& f) {
    for (i32 w = 0; w < 4; ++w) f(u32(w), TileCoord{{0, 1, 16 * w, 16 * w + 16}});
  }
};

// The instruction of a call on a worker.
inline Instruction& on(Program& program, u32 worker, u32 call) {
  for (Instruction& instruction : program.workers[worker])
    if (instruction.opcode < kNopOpcode && instruction.call == call) return instruction;
  throw Error(ErrorCode::kInternal, "no such instruction");
}

}  // namespace heddle::proof
