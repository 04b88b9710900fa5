// Memory of the whole kernels of gated_delta_rule: what a chunk has in the workspace, and shared memory. For kernels and plan.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/ops/recurrence/delta_chunks.h"
#include "heddle/tile/budget.h"

namespace heddle {

constexpr i32 kDeltaThreads = 128;  // a CTA that prepares or answers a chunk has them
constexpr i32 kDeltaStages = 3;     // chunks in flight in a scan
constexpr i32 kDeltaLine =
    kDeltaChunk + 1;  // floats of a row of a chunk's square on chip: columns are in other banks

// Bytes of a row of 16-bit elements on chip: eight rows of a matrix lie in different banks.
constexpr i32 delta_pitch(i32 elements) {
  return 2 * elements + 16;
}

// A chunk's part of the workspace: its keys as the state meets them, as sums of two bf16, and then kCount floats for each position and
// one more, by which the state stays to the chunk's other end.
template <i32 kCount>
struct DeltaRecordOf {
  i32 dim;

  static constexpr i32 kStays = kCount * kDeltaChunk;  // the number of the last float
  static constexpr i32 kFactors = 4 * kStays + 16;     // bytes
  constexpr i32 plane() const { return kDeltaChunk * dim * 2; }
  constexpr i32 bytes() const { return 2 * plane() + kFactors; }
};
using DeltaRecord = DeltaRecordOf<1>;  // by which what a position writes stays to the end
using DeltaBackwardRecord =
    DeltaRecordOf<2>;  // by which dy reaches the begin, and what is known of a key does

constexpr tile::Budget delta_prepare_budget(i32 dim, i32 columns) {
  return tile::Budget{}
      .part("keys", kDeltaChunk * delta_pitch(dim))
      .part("couplings", kDeltaChunk * kDeltaLine * 4)
      .part("inverse", kDeltaChunk * kDeltaLine * 4)
      .part("decays", kDeltaChunk * 4)
      .part("betas", kDeltaChunk * 4)
      .part("values", kDeltaChunk * delta_pitch(columns));
}

constexpr i32 delta_stage_bytes(i32 dim) {
  return 3 * kDeltaChunk * delta_pitch(dim) + DeltaRecord::kFactors;
}
constexpr tile::Budget delta_scan_budget(i32 dim) {
  return tile::Budget{}.part("stages", kDeltaStages * delta_stage_bytes(dim));
}

// A scan with few heads cuts the chunks into segments. Each segment's own end, and the matrix by which the state before it reaches its end,
// are found at the same time; then all segments are scanned at the same time. The cut is a function of the shape alone, and so are the bits.
struct DeltaSegments {
  i32 count;   // segments
  i32 chunks;  // each has them; the last may have fewer

  // `scans`: heads times parts of columns.
  static constexpr DeltaSegments of(i64 scans, i32 chunks) {
    constexpr i32 kAtOnce = 264;  // CTAs that 132 SMs scan with at a time
    constexpr i32 kShortest = 16, kFewest = 3;
    const i32 room = scans > kAtOnce ? 0 : kAtOnce / i32(scans), most = chunks / kShortest;
    const i32 count = room < most ? room : most;
    if (count < kFewest) return {1, chunks};
    const i32 each = (chunks + count - 1) / count;
    return {(chunks + each - 1) / each, each};
  }
};

// Floats of a segment: its end, and the matrix.
constexpr i64 delta_segment_floats(i32 dim, i32 columns) {
  return i64(dim) * (columns + dim);
}

constexpr tile::Budget delta_join_budget(i32 dim) {
  return tile::Budget{}.part("state", dim * 16);
}

constexpr tile::Budget delta_answer_budget(i32 dim) {
  return tile::Budget{}
      .part("queries", kDeltaChunk * delta_pitch(dim))
      .part("keys", kDeltaChunk * delta_pitch(dim))
      .part("scores", kDeltaChunk * kDeltaLine * 4)
      .part("decays", kDeltaChunk * 4)
      .part("betas", kDeltaChunk * 4);
}

// The gradient.
constexpr i32 kDeltaSquarePitch = delta_pitch(kDeltaChunk);

constexpr tile::Budget delta_backward_prepare_budget(i32 dim, i32 columns) {
  constexpr i32 kSquare = kDeltaChunk * kDeltaLine * 4;
  return tile::Budget{}
      .part("queries", kDeltaChunk * delta_pitch(dim))
      .part("keys", kDeltaChunk * delta_pitch(dim))
      .part("scores", kSquare)
      .part("couplings", kSquare)
      .part("inverse", kSquare)
      .part("product", kSquare)
      .part("decays", kDeltaChunk * 4)
      .part("betas", kDeltaChunk * 4)
      .part("dy", kDeltaChunk * delta_pitch(columns));
}

// `part`: columns of a CTA.
constexpr i32 delta_backward_stage_bytes(i32 dim, i32 part) {
  return 4 * kDeltaChunk * delta_pitch(dim) + kDeltaChunk * delta_pitch(part) + DeltaBackwardRecord::kFactors;
}
constexpr tile::Budget delta_backward_scan_budget(i32 dim, i32 part, i32 stages) {
  return tile::Budget{}.part("stages", stages * delta_backward_stage_bytes(dim, part));
}

constexpr tile::Budget delta_backward_answer_budget(i32 dim, i32 columns) {
  const i32 rows = kDeltaChunk * delta_pitch(columns), square = kDeltaChunk * kDeltaSquarePitch;
  return tile::Budget{}
      .part("queries", kDeltaChunk * delta_pitch(dim))
      .part("keys", kDeltaChunk * delta_pitch(dim))
      .part("dy", rows)
      .part("written", 2 * rows)  // beta times error
      .part("z", 2 * rows)        // the gradient of errors
      .part("of dy", 2 * square)
      .part("of z", 2 * square)
      .part("decays", kDeltaChunk * 4)
      .part("betas", kDeltaChunk * 4)
      .part("numbers", kDeltaChunk * 4)
      .part("sums", kDeltaThreads / 32 * kDeltaChunk * 4)
      .part("inner", kDeltaThreads / 32 * 4);
}

}  // namespace heddle
