// Makes floats of weights that a checkpoint stores in types that heddle does not compute with.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "heddle/engine/model.h"
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
bool are_fp8_scales(const TensorEntry& codes, const TensorEntry& scales, const CodeFormat& format);

struct Fp8Codes {
  const TensorEntry& codes;
  const TensorEntry& scales;  // are_fp8_scales()
  std::span<const std::byte> code_bytes, scale_bytes;
};
// The coding of fp8 with such scales, and its codes with a scale for each row and group of columns.
Coding coding_of(const TensorEntry& codes, const TensorEntry& scales, const CodeFormat& format);
SourceCodes fp8_codes(const Fp8Codes& fp8, const CodeFormat& format);

// Integers of 4 bits plus 8, eight in a word of a row, as compressed-tensors packs them.
struct PackedCodes {
  int64_t rows = 0, cols = 0;
  int group = 0;              // columns that share a scale; 0: all
  const TensorEntry& codes;   // [rows, words]
  const TensorEntry& scales;  // [rows, groups]
  std::span<const std::byte> code_bytes, scale_bytes;
  std::span<const std::byte>
      zero_bytes;  // each group's, eight rows in a word: [words, groups]; empty: all are 0
};
SourceCodes packed_codes(const PackedCodes& packed);

// Codes, less their zeros, times their scales, in f32, rounded as in transformers.
std::vector<std::byte> codes_as_floats(const SourceCodes& codes);

}  // namespace heddle
