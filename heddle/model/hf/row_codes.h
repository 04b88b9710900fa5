// Matrices of integers of 8 bits with a scale for each row, or for each group of adjacent columns of a row, as compressed-tensors
// stores W8A16 and W8A8: as they are (int-quantized), or plus 128, four in a word (pack-quantized).
//   value = (code - zero) * scale, rounded to the type of the scales
#pragma once

#include "heddle/model/hf/composed_weight.h"
#include "heddle/model/hf/quantisation.h"

namespace heddle {

ComposedByName compose_row_codes(const CodeFormat& format, const std::vector<std::string>& names,
                                 const FindStored& find);

}  // namespace heddle
