// Rotary frequencies of a configuration.
#pragma once

#include <vector>

#include "heddle/model/hf/rope_config.h"

namespace heddle {

// Angle per position of each pair of a head, as transformers computes them (f32): theta^(-2i / rotary_dim),
// scaled for kLlama3 as its modeling_rope_utils does.
std::vector<float> inverse_frequencies(const RopeConfig& rope, int head_dim);

}  // namespace heddle
