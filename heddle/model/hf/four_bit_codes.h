// Matrices of 4-bit floats with scales, two in a byte, in the formats that describe themselves by the names of their tensors:
//   NVFP4          value = e2m1 * (scale * all) or e2m1 * (scale / all), in bf16; 16 adjacent columns of a row have a scale of e4m3
//   MXFP4          value = e2m1 * 2^(scale - 127), in bf16, exactly; 32 adjacent columns of a row have a scale
//   bitsandbytes   value = map[code] * absmax, in the type that the file names; nf4 or fp4, blocks of the matrix as one row, whose
//                  scales may be codes of 8 bits themselves
#pragma once

#include "heddle/model/hf/composed_weight.h"

namespace heddle {

// NVFP4 as compressed-tensors stores it (`weight_packed` and the divisor `weight_global_scale`), and as modelopt does (bytes as
// `weight`, and the factor `weight_scale_2`).
ComposedByName compose_nvfp4(const std::vector<std::string>& names, const FindStored& find);

// MXFP4 as compressed-tensors stores it: `weight_packed` of U8 [rows, columns / 2], and `weight_scale` of U8.
ComposedByName compose_mxfp4(const std::vector<std::string>& names, const FindStored& find);

// bitsandbytes' nf4 and fp4, each with a `weight.quant_state.bitsandbytes__nf4` of JSON.
ComposedByName compose_bitsandbytes(const std::vector<std::string>& names, const FindStored& find);

}  // namespace heddle
