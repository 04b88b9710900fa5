// Rotary frequencies of a configuration.
#pragma once

#include <vector>

#include "heddle/model/hf/rope_config.h"

namespace heddle {

struct Rotary {
  std::vector<float> inv_freq;  // angle per position of each pair of a head
  double scale = 1;             // multiplies cos and sin
};

// Factors of the turned elements, each for `period` positions.
struct RotaryGains {
  std::vector<float> values;  // none: no factors
  int period = 1;
};

// The factors of queries that rope.query_beta gives, for all positions of the model.
RotaryGains query_gains(const RopeConfig& rope);

// As in transformers' modeling_rope_utils, in f32: theta^(-2i / head_dim), scaled by the rope's type. They
// are valid for texts of up to rope.max_positions. `context`: positions that a sequence may have; longrope's
// factors depend on it, not on the length of a text, so that cached keys stay valid while a text grows.
Rotary rotary_of(const RopeConfig& rope, int rotary_dim, int context);

}  // namespace heddle
