// The configurations of DeepSeek V2 and V3, and of GLM-4.7-Flash and Mistral Small 4, which have their attention.
#pragma once

#include "heddle/model/hf/decoder_config.h"
#include "heddle/model/hf/grouped_experts.h"

namespace heddle {

// `head_dim` is the size of the rotated part, qk_rope_head_dim; attention_bias is of the projections to the latents, and of o.
struct DeepseekConfig : DecoderConfig {
  int q_lora_rank = 0;  // 0: queries are projected in one step
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
  bool rope_interleave = true;  // partners of a rotation are adjacent; false: half a head apart
  double score_scale = 1;
  RopeConfig query_rope = {};  // whose query_beta makes queries grow with their position
  GroupedExperts experts;
};

DeepseekConfig read_deepseek_v2_config(const Config& config);
DeepseekConfig read_deepseek_v3_config(const Config& config);
DeepseekConfig read_glm4_moe_lite_config(const Config& config);
DeepseekConfig read_mistral4_config(const Config& config);

}  // namespace heddle
