// The configurations of Qwen 2, 2.5 and 3, and of the mixtures of experts of Qwen 2 and 3.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// attention_bias: of the q, k, v and o projections of Qwen 3; Qwen 2 always has those of q, k and v.
using QwenConfig = DecoderConfig;

struct QwenMoeConfig : QwenConfig {
  int moe_intermediate_size = 0;
  int num_experts = 0;
  int num_experts_per_tok = 0;
  int shared_expert_intermediate_size = 0;  // Qwen 2
  bool norm_topk_prob = false;
  bool sees_images = false;  // published files have all experts of a layer stacked and transposed
  std::vector<bool> sparse;  // layers that have experts
};

// Which layers have experts, and what those are.
void read_qwen_mixture(const Config& config, const Experts& defaults, int inner, QwenMoeConfig& c);
QwenConfig read_qwen2_config(const Config& config);
QwenConfig read_qwen3_config(const Config& config);
// The text models of those that see images: Qwen 2 VL, 2.5 VL and 3 VL.
QwenConfig read_qwen2_vl_config(const Config& config);
QwenConfig read_qwen3_vl_config(const Config& config);
QwenMoeConfig read_qwen2_moe_config(const Config& config);
QwenMoeConfig read_qwen3_moe_config(const Config& config);
QwenMoeConfig read_qwen3_vl_moe_config(const Config& config);

}  // namespace heddle
