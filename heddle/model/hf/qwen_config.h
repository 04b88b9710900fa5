// The configurations of Qwen 2, 2.5 and 3.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct QwenConfig : DecoderConfig {
  bool attention_bias =
      false;                 // Qwen 3: of the q, k, v and o projections; Qwen 2 has one of q, k and v always
  std::vector<int> windows;  // positions that each layer sees; 0: all
};

QwenConfig read_qwen2_config(const Config& config);
QwenConfig read_qwen3_config(const Config& config);

}  // namespace heddle
