// Makes floats of weights that a checkpoint stores in types that heddle does not compute with.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "heddle/model/hf/quantisation.h"
#include "heddle/model/hf/tensor_table.h"

namespace heddle {

// Doubles as floats.
std::vector<std::byte> doubles_as_floats(std::span<const std::byte> bytes);

constexpr size_t kMxfp4BlockBytes = 16;  // hold 32 codes

// Blocks of MXFP4 as bf16, exactly.
std::vector<std::byte> mxfp4_as_bf16(std::span<const std::byte> blocks, std::span<const std::byte> scales);

// True for scales of e4m3 codes [rows, cols]: one, one a row, or one a block of `format`. The last blocks may be cut.
// Stacked matrices [n, rows, cols] have n times as many scales.
bool are_fp8_scales(const TensorEntry& codes, const TensorEntry& scales, const Fp8Format& format);

// Codes times their scales, in f32, rounded to bf16 as in transformers.
struct Fp8Codes {
  const TensorEntry& codes;
  const TensorEntry& scales;  // are_fp8_scales()
  std::span<const std::byte> code_bytes, scale_bytes;
};
std::vector<std::byte> fp8_as_bf16(const Fp8Codes& fp8, const Fp8Format& format);

}  // namespace heddle
