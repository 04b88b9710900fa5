// Reads how config.json describes weights that are stored as codes, under quantization_config.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "heddle/model/hf/config.h"

namespace heddle {

// Integers of 4 or 8 bits, several in a word, as compressed-tensors packs them.
struct Packing {
  int bits = 4;
  int group = 0;  // adjacent columns of a row that share a scale; 0: all

  bool operator==(const Packing&) const = default;
};

// Weights in fp8 with scales: of blocks of a matrix, of its rows, or of all of it. Or integers, of GPTQ, AWQ or compressed-tensors,
// with scales of groups of adjacent columns of a row. A folder of compressed-tensors may have several of them.
struct CodeFormat {
  enum class Kind : unsigned char { kOther, kGptq, kAwq, kInt8 };  // the first has what the fields say

  int block_rows = 128, block_cols = 128;
  std::vector<Packing> packings;  // each once; shapes say which one a matrix has
  bool mxfp4 = false;             // bytes of two 4-bit floats without a scale of the whole matrix
  int group = 0;                  // columns that share a scale in GPTQ, AWQ and integers of a byte; 0: all
  Kind kind = Kind::kOther;
  int bits = 4;                 // in a code of GPTQ or AWQ
  bool zeros_less_one = false;  // zero points are stored less one, as in GPTQ's first format
};

// Reads a quantization_config: the methods fp8, fbgemm_fp8, gptq, awq, bitsandbytes of 4 bits, modelopt in NVFP4 or FP8, and
// compressed-tensors with floats or integers of 8 bits, packed integers of 4 or 8, NVFP4, MXFP4, or a mixture of them.
// Refuses others. The default where there is none. What it says of activations is not looked at: heddle keeps them as they are.
CodeFormat read_code_format(const Config& config);

// The packing of rows of `cols` integers in `words` words each, with `scales` scales. Nothing if no packing of the format fits, or if
// two fit that differ there.
std::optional<Packing> packing_of(const CodeFormat& format, int64_t cols, int64_t words, int64_t scales);

}  // namespace heddle
