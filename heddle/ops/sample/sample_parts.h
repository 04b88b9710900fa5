// Describes each slice of a row's scores (score_slices.h) for sample, so that many tiles read the scores instead of its one: the
// best and, if the sequence draws, the sum of weights. If the sequence drops tokens (StepSequence::drops), it also sorts the
// slice's scores in descending order. Scores are the logits after the bias, the penalties and the mask, as in sample.
#pragma once

#include "heddle/ir/score_edits.h"
#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"
#include "heddle/ops/sample/score_slices.h"

namespace heddle {

struct SampleParts {
  Tensor step;    // u8 [bytes], the host part of the step record
  Tensor logits;  // f32 [M, V], of the wanted rows
  Tensor state;   // u8 [bytes], the device part
  Tensor edits;   // f32 [slots, ScoreEdits::kPlanes, V]
  Tensor masks;   // u8 [slots, ScoreEdits::mask_bytes(V)]
  Tensor best;    // f32 [M, S, kParts]
  Tensor sorted;  // f32 [M, S, kSize]
  Tensor blocks;  // f32 [M, S, kPlanes, kBlocks]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("logits", s.logits, "M, V", "f32");
    v.read("state", s.state, ".", "u8");
    v.read("edits", s.edits, "L, ., V", "f32");
    v.read("masks", s.masks, "L, .", "u8");
    v.write("best", s.best, "M, S, .", "f32");
    v.write("sorted", s.sorted, "M, S, .", "f32");
    v.write("blocks", s.blocks, "M, S, ., .", "f32");
  }
};

}  // namespace heddle
