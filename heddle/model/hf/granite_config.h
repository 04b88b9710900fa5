// The configurations of Granite 3, of its mixtures of experts, and of Granite 4.
#pragma once

#include "heddle/model/hf/mamba2_config.h"

namespace heddle {

struct GraniteConfig : DecoderConfig {
  double embedding_multiplier = 1, attention_multiplier = 1, residual_multiplier = 1;
  double logits_scaling = 1;  // logits are divided by it
};

// intermediate_size is that of an expert.
struct GraniteMoeConfig : GraniteConfig {
  Experts experts;
};

// Granite 4: layers may have no experts (experts.count is 0), and heads need not turn.
struct GraniteHybridConfig : GraniteMoeConfig {
  int shared_intermediate_size = 0;  // the width of the MLP that all tokens take
  bool turns = false;
  std::vector<bool> attends = {};  // the layers with attention; the others have Mamba-2
  Mamba2Config mamba = {};         // as read where some do not attend
};

GraniteConfig read_granite_config(const Config& config);
GraniteMoeConfig read_granitemoe_config(const Config& config);
GraniteHybridConfig read_granitemoehybrid_config(const Config& config);

}  // namespace heddle
