// The configurations of LFM2 and of its mixtures of experts.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct Lfm2Config : DecoderConfig {
  std::vector<bool> convolves;  // layers with a short convolution in place of attention
  int conv_width = 0;
  bool conv_bias = false;
  Experts experts;  // count 0: no layer has some
  int num_dense_layers = 0, moe_intermediate_size = 0;
  bool use_expert_bias = false, norm_topk_prob = false;
  double routed_scaling_factor = 1;
};

Lfm2Config read_lfm2_config(const Config& config);
Lfm2Config read_lfm2_moe_config(const Config& config);

}  // namespace heddle
