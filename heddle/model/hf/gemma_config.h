// The configurations of Gemma 2 and of the text models of Gemma 3.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct GemmaConfig : DecoderConfig {
  bool attention_bias = false;  // biases of the q, k, v and o projections
  double query_pre_attn_scalar = 0;
  std::vector<int> windows;  // positions that each layer sees; 0: all
  RopeConfig local_rope;     // Gemma 3: rope of the layers with a window
  // Gemma 2; 0: none.
  double attn_logit_softcapping = 0;
  double final_logit_softcapping = 0;
};

GemmaConfig read_gemma2_config(const Config& config);
GemmaConfig read_gemma3_config(const Config& config);

}  // namespace heddle
