// GPTQ and AWQ: integers of 4 or 8 bits in words, columns of a matrix after one another, with a scale and a zero point for each
// group of columns and each row.
//   value = (code - zero) * scale, rounded to the type of the scales
#pragma once

#include "heddle/model/hf/composed_weight.h"
#include "heddle/model/hf/quantisation.h"

namespace heddle {

ComposedByName compose_column_codes(const CodeFormat& format, const std::vector<std::string>& names,
                                    const FindStored& find);

}  // namespace heddle
