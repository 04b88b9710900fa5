// The configurations of GLM-4, of 2024 and of 2025 (0414), and of the mixtures of experts GLM-4.5 and 4.6.
#pragma once

#include "heddle/model/hf/decoder_config.h"
#include "heddle/model/hf/grouped_experts.h"

namespace heddle {

struct GlmConfig : DecoderConfig {
  bool norms_outputs = false;  // outputs of attention and MLP are normalised too, as in GLM-4 of 2025
};

struct Glm4MoeConfig : DecoderConfig {
  bool use_qk_norm = false;
  GroupedExperts experts;
};

GlmConfig read_glm_config(const Config& config);   // year 2024
GlmConfig read_glm4_config(const Config& config);  // year 2025
Glm4MoeConfig read_glm4_moe_config(const Config& config);

}  // namespace heddle
