// Chooses the next token of each sequence whose last row is wanted, and moves the state on. Scores are the logits
// after the steps of transformers' generate, in its order: the bias and the repetition penalty over the seen tokens, the penalties of
// the answer's tokens and the mask (score_edits.h), temperature, top-k, top-p, min-p; temperature 0 takes the largest score, lowest token first. Scores equal to the last one
// that top-k or top-p keeps are kept too. The random number is Philox of (seed, draws): it depends on the sequence
// alone, not on what else is in the batch.
// If a score is NaN or plus infinity, or all are minus infinity, there is no token to choose: kNoToken.
// What sample_parts makes of the same logits is optional: with it a GPU need not read all of them here.
// A sequence with one row goes on by itself: token, position and start are those of its next step.
#pragma once

#include "heddle/ir/score_edits.h"
#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"
#include "heddle/ops/sample/score_slices.h"
#include "heddle/tile/philox.h"

namespace heddle {

struct Sample {
  Tensor step;    // u8 [bytes], the host part of the step record
  Tensor logits;  // f32 [M, V], of the wanted rows
  Tensor best;    // f32 [M, S, kParts], optional, as the next two are
  Tensor sorted;  // f32 [M, S, kSize]
  Tensor blocks;  // f32 [M, S, kPlanes, kBlocks]
  Tensor
      state;  // u8 [bytes], the device part: sampled, draws, seen and, for a single row, what it goes on with
  Tensor edits;  // f32 [slots, ScoreEdits::kPlanes, V], of which counts change
  Tensor masks;  // u8 [slots, ScoreEdits::mask_bytes(V)]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("logits", s.logits, "M, V", "f32");
    v.optional_read("best", s.best, "M, S, .", "f32");
    v.optional_read("sorted", s.sorted, "M, S, .", "f32");
    v.optional_read("blocks", s.blocks, "M, S, ., .", "f32");
    v.write("state", s.state, ".", "u8");
    v.write("edits", s.edits, "L, ., V", "f32");
    v.read("masks", s.masks, "L, .", "u8");
  }
};

}  // namespace heddle
