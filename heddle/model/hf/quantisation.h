// Reads how config.json describes weights that are stored as codes, under quantization_config.
#pragma once

#include "heddle/model/hf/config.h"

namespace heddle {

// Weights in fp8 with scales: of blocks of a matrix, of its rows, or of all of it. Or integers of 4 bits, eight in a word, with
// scales of groups of adjacent columns of a row.
struct CodeFormat {
  enum class Kind : unsigned char { kOther, kGptq, kAwq, kInt8 };  // the first has what the fields say

  int block_rows = 128, block_cols = 128;
  bool packed = false;  // integers of 4 bits
  int group = 0;        // columns that share one of their scales; 0: all
  Kind kind = Kind::kOther;
  int bits = 4;                 // in a code of GPTQ or AWQ
  bool zeros_less_one = false;  // zero points are stored less one, as in GPTQ's first format
};

// Reads a quantization_config: the methods fp8, fbgemm_fp8, gptq, awq, bitsandbytes of 4 bits, modelopt in NVFP4 or FP8, and
// compressed-tensors with floats or integers of 8 bits, packed integers of 4, or NVFP4.
// Refuses others. The default where there is none. What it says of activations is not looked at: heddle keeps them as they are.
CodeFormat read_code_format(const Config& config);

}  // namespace heddle
