#include "heddle/model/hf/expansion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "heddle/base/element.h"
#include "heddle/base/float16.h"
#include "heddle/base/float8.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

constexpr const char* kExponents = "F8_E8M0";  // a type of scales: 2^(byte - 127)

int64_t blocks_of(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}

std::vector<float> scales_of(const Fp8Codes& fp8) {
  const TensorEntry& entry = fp8.scales;
  const size_t width = size_t(entry.bits / 8);
  std::vector<float> scales(fp8.scale_bytes.size() / width);
  for (size_t i = 0; i < scales.size(); ++i) {
    const std::byte* at = fp8.scale_bytes.data() + i * width;
    scales[i] =
        entry.type == kExponents ? std::ldexp(1.0f, int(*at) - 127) : float(load_number(*entry.dtype, at));
  }
  return scales;
}

}  // namespace

std::vector<std::byte> doubles_as_floats(std::span<const std::byte> bytes) {
  auto made = make_vector<std::byte>(bytes.size() / 2, "a tensor of doubles as floats");
  for (size_t i = 0; i < made.size() / sizeof(float); ++i) {
    double value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    const float near = float(value);
    std::memcpy(made.data() + i * sizeof near, &near, sizeof near);
  }
  return made;
}

// A block is 32 codes of a sign, two bits of exponent and one of fraction, the even one in the low bits of a byte, times
// 2^(scale - 127) (Rouhani et al., 2023: "Microscaling Data Formats for Deep Learning").
std::vector<std::byte> mxfp4_as_bf16(std::span<const std::byte> blocks, std::span<const std::byte> scales) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  using Pair = std::array<std::byte, 4>;      // two codes of a byte in bf16
  std::array<std::vector<Pair>, 256> tables;  // by scale: all bytes
  const auto table_of = [&](std::byte scale) -> const std::vector<Pair>& {
    std::vector<Pair>& table = tables[size_t(scale)];
    for (unsigned codes = 0; table.size() < 256; ++codes) {
      Pair& pair = table.emplace_back();
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned code = codes >> (4 * half) & 15u;
        const float value = std::ldexp(kValues[code & 7u], int(scale) - 127);
        store_number(DType::kBf16, &pair[2 * half], double(code & 8u ? -value : value));
      }
    }
    return table;
  };
  auto made = make_vector<std::byte>(blocks.size() * sizeof(Pair), "a tensor of MXFP4 as bf16");
  for (size_t block = 0; block < scales.size(); ++block) {
    const std::vector<Pair>& table = table_of(scales[block]);
    for (size_t i = block * kMxfp4BlockBytes; i < (block + 1) * kMxfp4BlockBytes; ++i)
      std::memcpy(&made[i * sizeof(Pair)], &table[size_t(blocks[i])], sizeof(Pair));
  }
  return made;
}

bool are_fp8_scales(const TensorEntry& codes, const TensorEntry& scales, const Fp8Format& format) {
  if (codes.dtype != DType::kF8E4M3) return false;
  if (scales.type != kExponents && !(scales.dtype && is_wide_float(*scales.dtype))) return false;
  std::span<const int64_t> matrix = codes.shape, shape = scales.shape;
  if (matrix.size() == 3) {
    if (shape.empty() || shape[0] != matrix[0]) return false;
    matrix = matrix.subspan(1), shape = shape.subspan(1);
  }
  if (matrix.size() != 2) return false;
  const int64_t rows = matrix[0], cols = matrix[1];
  const auto is = [&](std::initializer_list<int64_t> wanted) { return std::ranges::equal(shape, wanted); };
  return is({}) || is({1}) || is({1, 1}) || is({rows}) || is({rows, 1}) ||
         is({blocks_of(rows, format.block_rows), blocks_of(cols, format.block_cols)});
}

std::vector<std::byte> fp8_as_bf16(const Fp8Codes& fp8, const Fp8Format& format) {
  const std::vector<float> scales = scales_of(fp8);
  const bool stacked = fp8.codes.shape.size() == 3;
  const size_t matrices = stacked ? size_t(fp8.codes.shape[0]) : 1;
  const auto rows = size_t(fp8.codes.shape[stacked ? 1 : 0]), cols = size_t(fp8.codes.shape.back());
  const size_t scales_each = matrices > 0 ? scales.size() / matrices : 0;
  const size_t dims = fp8.scales.shape.size() - (stacked ? 1 : 0);
  // A scale belongs to so many rows and columns.
  size_t of_rows = 1, of_cols = std::max<size_t>(cols, 1);
  if (scales_each == 1)
    of_rows = std::max<size_t>(rows, 1);
  else if (dims == 2 && (scales_each != rows || fp8.scales.shape.back() != 1))
    of_rows = size_t(format.block_rows), of_cols = size_t(format.block_cols);
  const size_t in_a_row = (cols + of_cols - 1) / of_cols;
  std::array<float, 256> values;
  for (size_t code = 0; code < values.size(); ++code) values[code] = f8e4m3_to_float(uint8_t(code));
  auto made = make_vector<std::byte>(2 * matrices * rows * cols, "a tensor of fp8 as bf16");
  for (size_t row = 0; row < matrices * rows; ++row)
    for (size_t col = 0; col < cols; ++col) {
      const size_t at = row * cols + col;
      const float scale = scales[row / rows * scales_each + row % rows / of_rows * in_a_row + col / of_cols];
      const uint16_t near = float_to_bf16(values[size_t(fp8.code_bytes[at])] * scale);
      std::memcpy(&made[2 * at], &near, sizeof near);
    }
  return made;
}

}  // namespace heddle
