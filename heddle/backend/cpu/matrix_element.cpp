#include "heddle/backend/cpu/matrix_element.h"

#include <algorithm>
#include <array>

#include "heddle/backend/cpu/element.h"
#include "heddle/base/element.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

// The value of each byte: of a code of 8 bits, or of the low four bits.
using CodeTable = std::array<float, 256>;

CodeTable table_of(DType type) {
  CodeTable table;
  for (int code = 0; code < 256; ++code) {
    const auto byte = std::byte(code);
    table[size_t(code)] = float(load_number(type, &byte, 0));
  }
  return table;
}

const CodeTable& codes(DType type) {
  static const CodeTable e4m3 = table_of(DType::kF8E4M3), e5m2 = table_of(DType::kF8E5M2),
                         i8 = table_of(DType::kI8), i4 = table_of(DType::kI4);
  switch (type) {
    case DType::kF8E4M3:
      return e4m3;
    case DType::kF8E5M2:
      return e5m2;
    case DType::kI8:
      return i8;
    case DType::kI4:
      return i4;
    default:
      fail(ErrorCode::kInternal, "[matrix] elements of type {} are no codes", name(type));
  }
}

void load_row(const Tensor& data, i32 r, i32 first, i32 count, float* to) {
  const i64 begin = r * data.stride[0] + first;
  if (is_wide_float(data.dtype)) {
    for (i32 i = 0; i < count; ++i)
      to[i] = get_element(data.dtype, data.data + (begin + i) * size_of(data.dtype));
    return;
  }
  const CodeTable& table = codes(data.dtype);
  if (data.dtype != DType::kI4) {
    for (i32 i = 0; i < count; ++i) to[i] = table[data.data[begin + i]];
    return;
  }
  for (i32 i = 0; i < count; ++i) to[i] = table[data.data[(begin + i) / 2] >> ((begin + i) % 2 * 4)];
}

}  // namespace

void decode_row(const Matrix& matrix, i32 r, i32 first, i32 count, float* to) {
  load_row(matrix.data, r, first, count, to);
  if (!matrix.scales.exists()) return;
  const auto at = [&](const Tensor& values, i32 c) {
    return reinterpret_cast<const float*>(values.data)[Matrix::place_of(values, matrix.data.size[1], r, c)];
  };
  const auto group_of = [&](const Tensor& values) { return matrix.data.size[1] / values.size[1]; };
  const bool has_zeros = matrix.zeros.exists();
  const i32 scale_group = group_of(matrix.scales),
            zero_group = has_zeros ? group_of(matrix.zeros) : scale_group;
  for (i32 begin = 0; begin < count;) {
    const i32 c = first + begin;
    const i32 end = std::min(
        {count, (c / scale_group + 1) * scale_group - first, (c / zero_group + 1) * zero_group - first});
    const float scale = at(matrix.scales, c), zero = has_zeros ? at(matrix.zeros, c) : 0;
    for (; begin < end; ++begin) to[begin] = (to[begin] - zero) * scale;
  }
}

float element_of(const Matrix& matrix, i32 r, i32 c) {
  float value;
  decode_row(matrix, r, c, 1, &value);
  return value;
}

}  // namespace heddle
