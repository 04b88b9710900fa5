#include "heddle/model/hf/row_codes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/integer.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

constexpr int64_t kBytesInAWord = 4;

struct RowCodes {
  int64_t rows = 0, cols = 0, groups = 1, group = 1;
  bool one_scale = false;  // for all of the matrix
  size_t row_bytes = 0;
  bool packed = false;  // codes have 128 added, and zeros lie in words of four rows each
  StoredTensor codes, scales, zeros;
};

// The zero of a group of a row.
int zero_of(const RowCodes& matrix, std::span<const std::byte> zeros, int64_t row, int64_t group) {
  if (!matrix.packed) return int8_t(zeros[size_t(matrix.one_scale ? 0 : row * matrix.groups + group)]);
  return int(zeros[size_t((row / kBytesInAWord * matrix.groups + group) * kBytesInAWord +
                          row % kBytesInAWord)]) -
         128;
}

std::vector<std::byte> expand(const RowCodes& matrix) {
  const auto codes = matrix.codes.bytes(), scales = matrix.scales.bytes();
  const auto zeros = matrix.zeros ? matrix.zeros.bytes() : std::span<const std::byte>();
  const DType type = *matrix.scales.entry->dtype;
  const auto width = size_t(size_of(type));
  auto made = make_vector<std::byte>(size_t(matrix.rows * matrix.cols) * width,
                                     fmt::format("the tensor {} as floats", matrix.codes.name));
  for (int64_t row = 0; row < matrix.rows; ++row)
    for (int64_t col = 0; col < matrix.cols; ++col) {
      const int64_t group = col / matrix.group;
      const std::byte stored = codes[size_t(row) * matrix.row_bytes + size_t(col)];
      const int code = matrix.packed ? int(stored) - 128 : int(int8_t(stored));
      const int zero = zeros.empty() ? 0 : zero_of(matrix, zeros, row, group);
      const float scale =
          float(load_number(type, scales.data(), matrix.one_scale ? 0 : row * matrix.groups + group));
      store_number(type, made.data() + size_t(row * matrix.cols + col) * width,
                   double(float(code - zero) * scale));
    }
  return made;
}

ComposedWeight compose(const CodeFormat& format, const StoredTensor& codes, const FindStored& find) {
  RowCodes matrix{
      .codes = codes, .scales = find(codes.name + "_scale"), .zeros = find(codes.name + "_zero_point")};
  matrix.rows = codes.entry->shape[0], matrix.cols = codes.entry->shape[1];
  matrix.row_bytes = size_t(matrix.cols);
  if (format.group > 0) matrix.group = format.group, matrix.groups = ceil_div(matrix.cols, matrix.group);
  if (format.group == 0) matrix.group = std::max<int64_t>(matrix.cols, 1);
  const auto refuse = [&](const char* why) {
    fail(ErrorCode::kIo, "[{}] tensor {} of I8 {}", codes.file->path(), codes.name, why);
  };
  if (!matrix.scales) refuse("has no scales next to it (_scale)");
  matrix.one_scale = matrix.scales.entry->shape.empty() || matrix.scales.is_floats({1});
  const std::vector<int64_t> wanted =
      matrix.one_scale ? matrix.scales.entry->shape : std::vector<int64_t>{matrix.rows, matrix.groups};
  if (!matrix.scales.is_floats(wanted))
    refuse("has scales that do not fit; they must be floats [rows, columns / group_size], [rows, 1] or one");
  if (matrix.zeros && !matrix.zeros.is("I8", wanted))
    refuse("has zero points that do not fit; they must be I8, as many as scales");
  ComposedWeight made{.parts = {matrix.codes, matrix.scales},
                      .what = "int8",
                      .dtype = *matrix.scales.entry->dtype,
                      .shape = {matrix.rows, matrix.cols},
                      .floats = {}};
  if (matrix.zeros) made.parts.push_back(matrix.zeros);
  made.floats = [shared = std::make_shared<const RowCodes>(std::move(matrix))] { return expand(*shared); };
  return made;
}

// Packed integers of 8 bits, if the shapes say that they are some.
std::optional<ComposedWeight> compose_packed(const CodeFormat& format, const std::string& weight,
                                             const FindStored& find) {
  RowCodes matrix{.packed = true,
                  .codes = find(weight + "_packed"),
                  .scales = find(weight + "_scale"),
                  .zeros = find(weight + "_zero_point")};
  const StoredTensor shape = find(weight + "_shape");
  const std::vector<int64_t>& words = matrix.codes.entry->shape;
  if (matrix.codes.entry->type != "I32" || words.size() != 2 || !matrix.scales || !shape) return {};
  if (!shape.entry->dtype || !is_integer(*shape.entry->dtype) ||
      shape.entry->shape != std::vector<int64_t>{2})
    return {};
  const std::byte* numbers = shape.bytes().data();
  matrix.rows = int64_t(load_number(*shape.entry->dtype, numbers, 0));
  matrix.cols = int64_t(load_number(*shape.entry->dtype, numbers, 1));
  if (matrix.rows != words[0] || matrix.cols < 1 || matrix.scales.entry->shape.size() != 2) return {};
  matrix.groups = matrix.scales.entry->shape[1];
  const auto packing = packing_of(format, matrix.cols, words[1], matrix.groups);
  if (!packing || packing->bits != 8 || !matrix.scales.is_floats({matrix.rows, matrix.groups})) return {};
  if (matrix.zeros && !matrix.zeros.is("I32", {ceil_div(matrix.rows, kBytesInAWord), matrix.groups}))
    return {};
  matrix.group = packing->group > 0 ? packing->group : matrix.cols;
  matrix.row_bytes = size_t(words[1] * kBytesInAWord);
  ComposedWeight made{.parts = {matrix.codes, matrix.scales, shape},
                      .what = "int8",
                      .dtype = *matrix.scales.entry->dtype,
                      .shape = {matrix.rows, matrix.cols},
                      .floats = {}};
  if (matrix.zeros) made.parts.push_back(matrix.zeros);
  made.floats = [shared = std::make_shared<const RowCodes>(std::move(matrix))] { return expand(*shared); };
  return made;
}

}  // namespace

ComposedByName compose_row_codes(const CodeFormat& format, const std::vector<std::string>& names,
                                 const FindStored& find) {
  constexpr std::string_view kEnd = "_packed";
  ComposedByName made;
  const bool are_bytes = format.kind == CodeFormat::Kind::kInt8;
  const bool are_packed = std::ranges::count(format.packings, 8, &Packing::bits) > 0;
  for (const std::string& name : names) {
    if (const StoredTensor codes = find(name);
        are_bytes && name.ends_with(".weight") && codes.entry->type == "I8" && codes.entry->shape.size() == 2)
      made.emplace(name, compose(format, codes, find));
    if (!are_packed || !name.ends_with(kEnd)) continue;
    const std::string weight = name.substr(0, name.size() - kEnd.size());
    if (auto packed = compose_packed(format, weight, find)) made.emplace(weight, std::move(*packed));
  }
  return made;
}

}  // namespace heddle
