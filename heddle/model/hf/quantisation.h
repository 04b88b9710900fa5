// Reads how config.json describes weights that are stored as codes, under quantization_config.
#pragma once

#include "heddle/model/hf/config.h"

namespace heddle {

// Weights in fp8 with scales: of blocks of a matrix, of its rows, or of all of it.
struct Fp8Format {
  int block_rows = 128, block_cols = 128;
};

// Reads a quantization_config of fp8: the methods fp8, fbgemm_fp8 and compressed-tensors with floats of 8 bits. Refuses others.
// The default where there is none. What it says of activations is not looked at: heddle keeps them as they are.
Fp8Format read_fp8_format(const Config& config);

}  // namespace heddle
