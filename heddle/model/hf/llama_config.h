// The configuration of Llama 2 and 3.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct LlamaConfig : DecoderConfig {
  bool attention_bias = false;  // biases of the q, k, v and o projections
  bool mlp_bias = false;        // biases of gate, up and down
};

LlamaConfig read_llama_config(const Config& config);

}  // namespace heddle
