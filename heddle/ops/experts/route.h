// Chooses the experts of each token, and the share of each: the best of its scores, in falling order. A sparse mixer (Liu et al.,
// 2024: "GRIN: GRadient-INformed MoE") chooses by logits. A choice's share is its part of a softmax over the experts that were
// not chosen before and whose logits x lie near the best m: (m - x) / max(|x|, m) <= threshold.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Route {
  Tensor logits;            // [T, E]
  Tensor bias;              // [E], added to the scores that choose (not to the shares), or none
  Tensor factors;           // [E], a factor of each expert's shares, or none
  Tensor choice;            // i32 [T, C]: experts
  Tensor share;             // f32 [T, C]: of their outputs
  i32 sigmoid = 0;          // scores are 1: sigmoid(logits); 0: softmax(logits)
  i32 normalise = 0;        // 1: shares are divided by their sum
  i32 groups = 1;           // groups of neighbouring experts
  i32 groups_kept = 1;      // groups whose experts can be chosen: those with the largest
  i32 scores_of_group = 1;  // sum of so many (1 or 2) largest scores
  float scale = 1;          // factor of the shares
  i32 sparse_mixer = 0;     // 1: choices and shares are those of a sparse mixer
  float threshold = 0;      // the sparse mixer's

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("logits", s.logits, "T, E");
    v.optional_read("bias", s.bias, "E");
    v.optional_read("factors", s.factors, "E");
    v.write("choice", s.choice, "T, C", "i32");
    v.write("share", s.share, "T, C", "f32");
    v.attribute("sigmoid", s.sigmoid);
    v.attribute("normalise", s.normalise);
    v.attribute("groups", s.groups);
    v.attribute("groups_kept", s.groups_kept);
    v.attribute("scores_of_group", s.scores_of_group);
    v.attribute("scale", s.scale);
    v.attribute("sparse_mixer", s.sparse_mixer);
    v.attribute("threshold", s.threshold);
  }
};

}  // namespace heddle
