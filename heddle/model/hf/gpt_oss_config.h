// The configuration of gpt-oss.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// intermediate_size is that of an expert.
struct GptOssConfig : DecoderConfig {
  int num_local_experts = 0;
  int num_experts_per_tok = 0;
  double swiglu_alpha = 1.702, swiglu_limit = 7;
  bool in_mxfp4 = false;  // as the checkpoint says
};

GptOssConfig read_gpt_oss_config(const Config& config);

}  // namespace heddle
