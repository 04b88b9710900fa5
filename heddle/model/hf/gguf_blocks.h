// Expands the blocks of a GGUF file: codes with scales, and scales of scales. The values are those of gguf-py's dequantisers, bit
// for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "heddle/base/gguf.h"

namespace heddle {

// Expands whole blocks of a type that is not F32, F16 or BF16 into their values.
void expand_blocks(const GgufType& type, std::span<const std::byte> blocks, std::span<float> values);

}  // namespace heddle
