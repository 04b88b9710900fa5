// The configurations of families whose layers have Mamba-2, attention, or both.
#pragma once

#include <algorithm>

#include "heddle/model/hf/grouped_experts.h"
#include "heddle/model/hf/mamba2_config.h"

namespace heddle {

struct BambaConfig : DecoderConfig {
  std::vector<bool> attends;  // the layers with attention; the others have Mamba-2
  Mamba2Config mamba;
};

// Each layer is one of four parts.
enum class NemotronPart : unsigned char { kMamba, kAttention, kMlp, kExperts };

struct NemotronHConfig : DecoderConfig {
  std::vector<NemotronPart> parts;
  Mamba2Config mamba;
  GroupedExperts experts;  // as read where some layer has them
  int shared_intermediate_size = 0;
  int latent_size = 0;  // columns that experts see; 0: all of a row

  bool has(NemotronPart part) const { return std::ranges::find(parts, part) != parts.end(); }
};

// Multipliers have their names in config.json, but those of the MLP: mlp_multipliers has both.
struct FalconH1Config : DecoderConfig {
  Mamba2Config mamba;
  double embedding_multiplier = 1, lm_head_multiplier = 1;
  double attention_in_multiplier = 1, key_multiplier = 1, attention_out_multiplier = 1;
  double ssm_in_multiplier = 1, ssm_out_multiplier = 1;
  double gate_multiplier = 1, down_multiplier = 1;
};

BambaConfig read_bamba_config(const Config& config);
FalconH1Config read_falcon_h1_config(const Config& config);
NemotronHConfig read_nemotron_h_config(const Config& config);

}  // namespace heddle
