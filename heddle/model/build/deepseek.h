// Shared by DeepSeek V2 and V3.
#pragma once

#include "heddle/model/build/family.h"
#include "heddle/model/hf/deepseek_config.h"

namespace heddle {

Definition define_deepseek(const DeepseekConfig& c, const Inventory& tensors);

}  // namespace heddle
