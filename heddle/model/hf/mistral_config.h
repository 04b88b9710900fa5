// The configurations of Mistral, Mixtral and Phi-3.5-MoE.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct MistralConfig : DecoderConfig {
  int sliding_window = 0;  // positions that each layer sees; 0: all
};

struct MixtralConfig : MistralConfig {
  int num_local_experts = 8;
  int num_experts_per_tok = 2;
};

struct PhimoeConfig : MixtralConfig {
  bool attention_bias = false, lm_head_bias = false;
  double router_threshold = 0;  // Route::threshold
};

MistralConfig read_mistral_config(const Config& config);
MixtralConfig read_mixtral_config(const Config& config);
PhimoeConfig read_phimoe_config(const Config& config);

}  // namespace heddle
