// The configurations of families whose layers have Mamba-2, attention, or both.
#pragma once

#include "heddle/model/hf/mamba2_config.h"

namespace heddle {

struct BambaConfig : DecoderConfig {
  std::vector<bool> attends;  // the layers with attention; the others have Mamba-2
  Mamba2Config mamba;
};

BambaConfig read_bamba_config(const Config& config);

}  // namespace heddle
