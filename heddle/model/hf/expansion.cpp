#include "heddle/model/hf/expansion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <memory>

#include <fmt/format.h>

#include "heddle/base/element.h"
#include "heddle/base/float16.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

constexpr const char* kExponents = "F8_E8M0";  // a type of scales: 2^(byte - 127)

int64_t blocks_of(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}

std::vector<float> scales_in(const TensorEntry& entry, std::span<const std::byte> bytes) {
  const size_t width = size_t(entry.bits / 8);
  std::vector<float> scales(bytes.size() / width);
  for (size_t i = 0; i < scales.size(); ++i) {
    const std::byte* at = bytes.data() + i * width;
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

bool are_fp8_scales(const TensorEntry& codes, const TensorEntry& scales, const CodeFormat& format) {
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

namespace {

// The rows and columns that a scale belongs to, and the scales of one matrix.
struct ScaleBlocks {
  size_t rows = 1, cols = 1;
  size_t in_a_row = 1, all = 1;

  ScaleBlocks(const TensorEntry& codes, const TensorEntry& scales, const CodeFormat& format) {
    const bool stacked = codes.shape.size() == 3;
    const auto matrix_rows = size_t(codes.shape[stacked ? 1 : 0]), matrix_cols = size_t(codes.shape.back());
    const auto shape = std::span(scales.shape).subspan(stacked ? 1 : 0);
    for (const int64_t dim : shape) all *= size_t(dim);
    cols = std::max<size_t>(matrix_cols, 1);
    if (all == 1)
      rows = std::max<size_t>(matrix_rows, 1);
    else if (shape.size() == 2 && (all != matrix_rows || shape.back() != 1))
      rows = size_t(format.block_rows), cols = size_t(format.block_cols);
    in_a_row = size_t(blocks_of(int64_t(matrix_cols), int64_t(cols)));
  }
};

}  // namespace

Coding coding_of(const TensorEntry& codes, const TensorEntry& scales, const CodeFormat& format) {
  const ScaleBlocks blocks(codes, scales, format);
  const bool in_groups = int64_t(blocks.cols) < codes.shape.back();
  return {Code::kF8E4M3, static_cast<unsigned short>(in_groups ? blocks.cols : 0)};
}

SourceCodes fp8_codes(const Fp8Codes& fp8, const CodeFormat& format) {
  const ScaleBlocks blocks(fp8.codes, fp8.scales, format);
  const std::vector<float> stored = scales_in(fp8.scales, fp8.scale_bytes);
  SourceCodes made{.coding = coding_of(fp8.codes, fp8.scales, format),
                   .shape = {fp8.codes.shape.begin(), fp8.codes.shape.end()},
                   .bytes = fp8.code_bytes};
  const bool stacked = fp8.codes.shape.size() == 3;
  const size_t matrices = stacked ? size_t(fp8.codes.shape[0]) : 1;
  const auto rows = size_t(fp8.codes.shape[stacked ? 1 : 0]);
  made.scales.reserve(matrices * rows * blocks.in_a_row);
  for (size_t row = 0; row < matrices * rows; ++row) {
    const auto first =
        stored.begin() + ptrdiff_t(row / rows * blocks.all + row % rows / blocks.rows * blocks.in_a_row);
    made.scales.insert(made.scales.end(), first, first + ptrdiff_t(blocks.in_a_row));
  }
  return made;
}

SourceCodes packed_codes(const PackedCodes& packed) {
  constexpr size_t kInAWord = 8;
  const auto rows = size_t(packed.rows), row_bytes = size_t((packed.cols + 1) / 2),
             stored_bytes = size_t(packed.codes.shape.back()) * sizeof(uint32_t);
  SourceCodes made{.coding = {Code::kI4, static_cast<unsigned short>(packed.group)},
                   .dtype = *packed.scales.dtype,
                   .shape = {packed.rows, packed.cols},
                   .scales = scales_in(packed.scales, packed.scale_bytes)};
  made.own =
      std::make_shared<std::vector<std::byte>>(make_vector<std::byte>(rows * row_bytes, "packed integers"));
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < row_bytes; ++i)
      (*made.own)[row * row_bytes + i] = packed.code_bytes[row * stored_bytes + i] ^ std::byte{0x88};
  made.bytes = *made.own;
  const size_t groups = rows > 0 ? made.scales.size() / rows : 0;
  for (size_t i = 0; !packed.zero_bytes.empty() && i < made.scales.size(); ++i) {
    const size_t row = i / groups, word = row / kInAWord * groups + i % groups, half = row % kInAWord;
    const auto byte = packed.zero_bytes[word * sizeof(uint32_t) + half / 2];
    made.zeros.push_back(float(int(size_t(byte) >> (4 * (half % 2)) & 15) - 8));
  }
  return made;
}

std::vector<std::byte> codes_as_floats(const SourceCodes& codes) {
  const auto cols = size_t(codes.shape.back());
  const DType element = info_of(codes.coding.code).element;
  size_t rows = 1;
  for (size_t d = 0; d + 1 < codes.shape.size(); ++d) rows *= size_t(codes.shape[d]);
  const size_t row_bytes = size_t(bytes_of(element, i64(cols)));
  const size_t group = codes.coding.group > 0 ? codes.coding.group : std::max<size_t>(cols, 1),
               groups = (cols + group - 1) / group, width = size_t(size_of(codes.dtype));
  std::array<float, 256> values{};  // by code
  for (size_t code = 0; code < size_t(1) << bits_of(element); ++code) {
    const auto byte = std::byte(code);
    values[code] = float(load_number(element, &byte, 0));
  }
  auto made = make_vector<std::byte>(
      width * rows * cols, fmt::format("a tensor of {} in {}", name(codes.coding.code), name(codes.dtype)));
  const auto code_at = [&](size_t row, size_t col) {
    if (bits_of(element) == 8) return size_t(codes.bytes[row * row_bytes + col]);
    return size_t(codes.bytes[row * row_bytes + col / 2]) >> (4 * (col % 2)) & 15;
  };
  for (size_t row = 0; row < rows; ++row)
    for (size_t col = 0; col < cols; ++col) {
      const size_t at = row * groups + col / group;
      const float zero = codes.zeros.empty() ? 0 : codes.zeros[at];
      const float value = (values[code_at(row, col)] - zero) * codes.scales[at];
      std::byte* to = &made[width * (row * cols + col)];
      if (codes.dtype == DType::kBf16) {
        const uint16_t near = float_to_bf16(value);
        std::memcpy(to, &near, sizeof near);
      } else {
        store_number(codes.dtype, to, double(value));
      }
    }
  return made;
}

}  // namespace heddle
