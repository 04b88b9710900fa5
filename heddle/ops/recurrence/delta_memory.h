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

// A chunk's part of the workspace: its keys as the state meets them, as sums of two bf16, and its factors, which are a float for each
// position, by which what it writes stays to the chunk's end, and the one by which the state stays.
struct DeltaRecord {
  i32 dim;

  static constexpr i32 kFactors = 16 * (kDeltaChunk / 4 + 1);  // bytes
  constexpr i32 plane() const { return kDeltaChunk * dim * 2; }
  constexpr i32 bytes() const { return 2 * plane() + kFactors; }
};

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

constexpr tile::Budget delta_answer_budget(i32 dim) {
  return tile::Budget{}
      .part("queries", kDeltaChunk * delta_pitch(dim))
      .part("keys", kDeltaChunk * delta_pitch(dim))
      .part("scores", kDeltaChunk * kDeltaLine * 4)
      .part("decays", kDeltaChunk * 4)
      .part("betas", kDeltaChunk * 4);
}

}  // namespace heddle
