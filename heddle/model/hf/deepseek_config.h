// The configurations of DeepSeek V2 and V3.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// `head_dim` is that of the rotated part, qk_rope_head_dim.
struct DeepseekConfig : DecoderConfig {
  int q_lora_rank = 0;  // 0: queries are projected in one step
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
  bool attention_bias = false;  // of the projections to the latents, and of o
  bool mlp_bias = false;
  bool rope_interleave = true;  // partners of a rotation lie side by side, not half a head apart
  double score_scale = 1;
  int first_k_dense_replace = 0;  // layers before this one have no experts
};

DeepseekConfig read_deepseek_v2_config(const Config& config);
DeepseekConfig read_deepseek_v3_config(const Config& config);

}  // namespace heddle
