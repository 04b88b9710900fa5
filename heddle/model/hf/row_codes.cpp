#include "heddle/model/hf/row_codes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/integer.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

struct RowCodes {
  int64_t rows = 0, cols = 0, groups = 1, group = 1;
  bool one_scale = false;  // for all of the matrix
  StoredTensor codes, scales, zeros;
};

std::vector<std::byte> expand(const RowCodes& matrix) {
  const auto codes = matrix.codes.bytes(), scales = matrix.scales.bytes();
  const auto zeros = matrix.zeros ? matrix.zeros.bytes() : std::span<const std::byte>();
  const DType type = *matrix.scales.entry->dtype;
  const auto width = size_t(size_of(type));
  auto made = make_vector<std::byte>(size_t(matrix.rows * matrix.cols) * width,
                                     fmt::format("the tensor {} as floats", matrix.codes.name));
  for (int64_t row = 0; row < matrix.rows; ++row)
    for (int64_t col = 0; col < matrix.cols; ++col) {
      const auto group = size_t(matrix.one_scale ? 0 : row * matrix.groups + col / matrix.group);
      const auto at = size_t(row * matrix.cols + col);
      const int zero = zeros.empty() ? 0 : int8_t(zeros[group]);
      const float scale = float(load_number(type, scales.data() + group * width));
      store_number(type, made.data() + at * width, double(float(int8_t(codes[at]) - zero) * scale));
    }
  return made;
}

ComposedWeight compose(const CodeFormat& format, const StoredTensor& codes, const FindStored& find) {
  RowCodes matrix{
      .codes = codes, .scales = find(codes.name + "_scale"), .zeros = find(codes.name + "_zero_point")};
  matrix.rows = codes.entry->shape[0], matrix.cols = codes.entry->shape[1];
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

}  // namespace

ComposedByName compose_row_codes(const CodeFormat& format, const std::vector<std::string>& names,
                                 const FindStored& find) {
  ComposedByName made;
  for (const std::string& name : names)
    if (const StoredTensor codes = find(name);
        name.ends_with(".weight") && codes.entry->type == "I8" && codes.entry->shape.size() == 2)
      made.emplace(name, compose(format, codes, find));
  return made;
}

}  // namespace heddle
