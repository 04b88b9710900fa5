// The configurations of Mistral and Mixtral.
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

MistralConfig read_mistral_config(const Config& config);
MixtralConfig read_mixtral_config(const Config& config);

}  // namespace heddle
