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

BambaConfig read_bamba_config(const Config& config);
NemotronHConfig read_nemotron_h_config(const Config& config);

}  // namespace heddle
