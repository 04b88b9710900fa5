// The configuration of Mistral.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct MistralConfig : DecoderConfig {
  int sliding_window = 0;  // positions that each layer sees; 0: all
};

MistralConfig read_mistral_config(const Config& config);

}  // namespace heddle
