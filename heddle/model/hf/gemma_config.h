// The configurations of Gemma, Gemma 2 and the text models of Gemma 3.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct GemmaConfig : DecoderConfig {
  double query_pre_attn_scalar = 0;
  RopeConfig local_rope;  // Gemma 3: rope of the layers with a window
  // Gemma 2; 0: none.
  double attn_logit_softcapping = 0;
  double final_logit_softcapping = 0;
};

DecoderConfig read_gemma_config(const Config& config);
GemmaConfig read_gemma2_config(const Config& config);
GemmaConfig read_gemma3_config(const Config& config);

}  // namespace heddle
