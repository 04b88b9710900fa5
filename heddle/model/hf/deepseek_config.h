// The configurations of DeepSeek V2 and V3.
#pragma once

#include "heddle/model/hf/decoder_config.h"

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
  int first_k_dense_replace = 0;  // layers before this one have no experts
  int n_routed_experts = 0, n_shared_experts = 0, num_experts_per_tok = 0;
  int moe_intermediate_size = 0;
  int n_group = 1, topk_group = 1;
  double routed_scaling_factor = 1;
  bool norm_topk_prob = false;
  bool scores_by_sigmoid = false;  // V3, which also adds e_score_correction_bias; V2: softmax
};

DeepseekConfig read_deepseek_v2_config(const Config& config);
DeepseekConfig read_deepseek_v3_config(const Config& config);

}  // namespace heddle
