// The configurations of OLMo, OLMo 2, OLMo 3 and OLMoE.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// clip_qkv: the largest absolute value of queries, keys and values; 0: any.
struct OlmoConfig : DecoderConfig {
  double clip_qkv = 0;
};

struct Olmo3Config : DecoderConfig {
  RopeConfig local_rope = {};  // for the layers with a window
};

// intermediate_size is that of an expert.
struct OlmoeConfig : OlmoConfig {
  int num_experts = 0;
  int num_experts_per_tok = 0;
  bool norm_topk_prob = false;
};

OlmoConfig read_olmo_config(const Config& config);
DecoderConfig read_olmo2_config(const Config& config);
Olmo3Config read_olmo3_config(const Config& config);
OlmoeConfig read_olmoe_config(const Config& config);

}  // namespace heddle
