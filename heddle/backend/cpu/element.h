// One element in memory, as a float.
#pragma once

#include <cstring>

#include "heddle/base/dtype.h"
#include "heddle/base/float16.h"
#include "heddle/base/types.h"

namespace heddle {

// i32 elements count as bits: values that are only moved.
inline float get_element(DType dtype, const u8* at) {
  if (dtype == DType::kBf16 || dtype == DType::kF16) {
    uint16_t bits;
    std::memcpy(&bits, at, 2);
    return dtype == DType::kBf16 ? bf16_to_float(bits) : f16_to_float(bits);
  }
  float value;
  std::memcpy(&value, at, 4);
  return value;
}

inline void set_element(DType dtype, u8* at, float value) {
  if (dtype == DType::kBf16 || dtype == DType::kF16) {
    const uint16_t bits = dtype == DType::kBf16 ? float_to_bf16(value) : float_to_f16(value);
    std::memcpy(at, &bits, 2);
  } else {
    std::memcpy(at, &value, 4);
  }
}

}  // namespace heddle
