// Matrices of integers of 8 bits as they are, with a scale for each row, or for each group of adjacent columns of a row, as
// compressed-tensors stores W8A16 and W8A8 (int-quantized).
//   value = (code - zero) * scale, rounded to the type of the scales
#pragma once

#include "heddle/model/hf/composed_weight.h"
#include "heddle/model/hf/quantisation.h"

namespace heddle {

ComposedByName compose_row_codes(const CodeFormat& format, const std::vector<std::string>& names,
                                 const FindStored& find);

}  // namespace heddle
