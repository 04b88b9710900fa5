// The configurations of GLM-4 (0414) and of the mixtures of experts GLM-4.5 and 4.6.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct Glm4MoeConfig : DecoderConfig {
  bool use_qk_norm = false;
  int first_k_dense_replace = 0;  // layers before this one have no experts
  int n_routed_experts = 0, n_shared_experts = 0, num_experts_per_tok = 0;
  int moe_intermediate_size = 0;
  int n_group = 1, topk_group = 1;
  double routed_scaling_factor = 1;
  bool norm_topk_prob = true;
};

DecoderConfig read_glm4_config(const Config& config);
Glm4MoeConfig read_glm4_moe_config(const Config& config);

}  // namespace heddle
