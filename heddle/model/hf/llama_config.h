// The configurations of Llama 2 and 3, CWM and Arcee's AFM.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// attention_bias: of the q, k, v and o projections.
using LlamaConfig = DecoderConfig;

LlamaConfig read_llama_config(const Config& config);
LlamaConfig read_arcee_config(const Config& config);
LlamaConfig read_cwm_config(const Config& config);

}  // namespace heddle
