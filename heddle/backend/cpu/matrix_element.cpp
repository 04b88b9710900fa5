#include "heddle/backend/cpu/matrix_element.h"

#include <algorithm>

#include "heddle/backend/cpu/simd.h"

namespace heddle {

void decode_row(const Matrix& matrix, i32 r, i32 first, i32 count, float* to) {
  static const CodeDecoder decode = code_decoder(simd_levels().front().target);
  const Tensor& data = matrix.data;
  CodeRun run{
      .dtype = data.dtype, .data = data.data, .first = r * data.stride[0] + first, .count = count, .to = to};
  if (!matrix.scales.exists()) return decode(run);
  const auto at = [&](const Tensor& values, i32 c) {
    return reinterpret_cast<const float*>(values.data) + Matrix::place_of(values, data.size[1], r, c);
  };
  // Elements from c on that have one scale, or scales that lie side by side.
  const auto run_of = [&](const Tensor& values, i32 c) {
    const i32 group = data.size[1] / values.size[1];
    return group == 1 ? count : group - c % group;
  };
  const bool has_zeros = matrix.zeros.exists();
  run.each_scale = matrix.scales.size[1] == data.size[1];
  run.each_zero = has_zeros && matrix.zeros.size[1] == data.size[1];
  for (i32 begin = 0; begin < count; begin += run.count) {
    const i32 c = first + begin;
    run.first = r * data.stride[0] + c, run.to = to + begin;
    run.count = std::min(count - begin, run_of(matrix.scales, c));
    run.scales = at(matrix.scales, c);
    if (has_zeros) run.zeros = at(matrix.zeros, c), run.count = std::min(run.count, run_of(matrix.zeros, c));
    decode(run);
  }
}

float element_of(const Matrix& matrix, i32 r, i32 c) {
  float value;
  decode_row(matrix, r, c, 1, &value);
  return value;
}

}  // namespace heddle
