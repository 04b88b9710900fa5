// The configurations of Granite and of its mixtures of experts.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct GraniteConfig : DecoderConfig {
  double embedding_multiplier = 1, attention_multiplier = 1, residual_multiplier = 1;
  double logits_scaling = 1;  // logits are divided by it
};

// intermediate_size is that of an expert.
struct GraniteMoeConfig : GraniteConfig {
  int num_local_experts = 0;
  int num_experts_per_tok = 0;
};

GraniteConfig read_granite_config(const Config& config);
GraniteMoeConfig read_granitemoe_config(const Config& config);

}  // namespace heddle
