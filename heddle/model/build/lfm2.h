// LFM2 (Liquid AI, 2025): layers of short convolutions between layers of attention, with an MLP or a mixture of experts.
#pragma once

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/lfm2_config.h"

namespace heddle {

Definition define_lfm2(const Lfm2Config& c, const Inventory& tensors);

}  // namespace heddle
