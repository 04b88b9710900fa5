// The configurations of Qwen's models most of whose layers have linear attention: Qwen 3 Next, and the text of 3.5.
#pragma once

#include "heddle/model/hf/qwen_config.h"

namespace heddle {

struct QwenHybridConfig : QwenMoeConfig {
  std::vector<bool> linear;  // layers with linear attention
  int linear_conv_kernel_dim = 0;
  int linear_num_key_heads = 0, linear_num_value_heads = 0;
  int linear_key_head_dim = 0, linear_value_head_dim = 0;
  bool by_key_heads = false;  // the rows of their first projections are stored key head by key head
};

QwenHybridConfig read_qwen3_next_config(const Config& config);
QwenHybridConfig read_qwen3_5_config(const Config& config);
QwenHybridConfig read_qwen3_5_moe_config(const Config& config);

}  // namespace heddle
