// Rotary position embedding as config.json describes it.
#pragma once

#include "heddle/model/hf/config.h"

namespace heddle {

enum class RopeType : unsigned char {
  kDefault,  // frequency i of a head is theta^(-2i / head_dim)
  kLlama3,   // low frequencies are divided by `factor`, high ones stay, with a ramp between
};

struct RopeConfig {
  double theta = 10'000.0;
  RopeType type = RopeType::kDefault;
  double partial_rotary_factor = 1.0;  // the part of each head that is rotated
  // Of kLlama3. Borders are wavelengths: original_max_position_embeddings / low_freq_factor and /
  // high_freq_factor.
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int original_max_position_embeddings = 0;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("theta", s.theta);
    v("type", s.type);
    v("partial_rotary_factor", s.partial_rotary_factor);
    v("factor", s.factor);
    v("low_freq_factor", s.low_freq_factor);
    v("high_freq_factor", s.high_freq_factor);
    v("original_max_position_embeddings", s.original_max_position_embeddings);
  }
};

// Reads `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling` (transformers 4).
RopeConfig read_rope(const Config& config, int max_position_embeddings);

// Refuses a partial_rotary_factor other than 1, for families that rotate whole heads.
void refuse_partial_rope(const Config& config);

}  // namespace heddle
