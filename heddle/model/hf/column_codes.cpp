#include "heddle/model/hf/column_codes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/integer.h"
#include "heddle/base/memory.h"
#include "heddle/base/parallel.h"

namespace heddle {
namespace {

constexpr std::string_view kQweight = ".qweight";
constexpr int kWord = 32;

// One matrix [rows, cols]. Its words: GPTQ has codes of adjacent columns in a word, AWQ of adjacent rows, shuffled.
struct ColumnCodes {
  bool awq = false;
  int bits = 4;
  unsigned plus = 0;  // added to stored zeros, modulo 2^bits
  int64_t rows = 0, cols = 0, groups = 0, group = 0;
  StoredTensor codes, scales, zeros, order;  // order: the group of each column

  int64_t in_a_word() const { return kWord / bits; }
};

uint32_t word_at(std::span<const std::byte> words, int64_t index) {
  uint32_t word = 0;
  std::memcpy(&word, words.data() + size_t(index) * sizeof word, sizeof word);
  return word;
}

// The place in a word of AWQ of the code of each of eight adjacent rows.
int shuffled(int64_t row) {
  constexpr int kPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};
  return kPlaces[row % 8];
}

// The code of a row in a line of words that holds one for each row.
unsigned code_in_line(const ColumnCodes& matrix, std::span<const std::byte> words, int64_t line,
                      int64_t row) {
  const int64_t per = matrix.in_a_word(), width = ceil_div(matrix.rows, per);
  const int64_t place = matrix.awq ? shuffled(row) : row % per;
  return word_at(words, line * width + row / per) >> (place * matrix.bits) & ((1u << matrix.bits) - 1);
}

unsigned code_at(const ColumnCodes& matrix, std::span<const std::byte> words, int64_t row, int64_t col) {
  if (matrix.awq) return code_in_line(matrix, words, col, row);
  const int64_t per = matrix.in_a_word();
  return word_at(words, col / per * matrix.rows + row) >> (col % per * matrix.bits) &
         ((1u << matrix.bits) - 1);
}

std::vector<int64_t> groups_of(const ColumnCodes& matrix) {
  std::vector<int64_t> groups(size_t(matrix.cols));
  for (int64_t col = 0; col < matrix.cols; ++col) {
    int64_t& group = groups[size_t(col)] = col / matrix.group;
    if (matrix.order) group = int32_t(word_at(matrix.order.bytes(), col));
    if (group < 0 || group >= matrix.groups)
      fail(ErrorCode::kIo, "[{}] tensor {} has the group {} for column {}; must be below {}",
           matrix.order.file->path(), matrix.order.name, group, col, matrix.groups);
  }
  return groups;
}

std::vector<std::byte> expand(const ColumnCodes& matrix) {
  constexpr int64_t kRowsOfAJob = 32;
  const std::vector<int64_t> groups = groups_of(matrix);
  const auto codes = matrix.codes.bytes(), zeros = matrix.zeros.bytes(), scales = matrix.scales.bytes();
  const DType type = *matrix.scales.entry->dtype;
  const auto width = size_t(size_of(type));
  const unsigned mask = (1u << matrix.bits) - 1;
  auto made = make_vector<std::byte>(size_t(matrix.rows * matrix.cols) * width,
                                     fmt::format("the tensor {} as floats", matrix.codes.name));
  parallel_for(size_t(ceil_div(matrix.rows, kRowsOfAJob)), 0, [&](size_t job) {
    const int64_t begin = int64_t(job) * kRowsOfAJob, end = std::min(matrix.rows, begin + kRowsOfAJob);
    for (int64_t col = 0; col < matrix.cols; ++col)
      for (int64_t row = begin; row < end; ++row) {
        const int64_t group = groups[size_t(col)];
        const unsigned zero = (code_in_line(matrix, zeros, group, row) + matrix.plus) & mask;
        const int less = int(code_at(matrix, codes, row, col)) - int(zero);
        const double scale = load_number(type, scales.data() + size_t(group * matrix.rows + row) * width);
        store_number(type, made.data() + size_t(row * matrix.cols + col) * width,
                     double(float(less) * float(scale)));
      }
  });
  return made;
}

ComposedWeight compose(const CodeFormat& format, const std::string& base, const FindStored& find) {
  const auto part = [&](const char* end) { return find(base + end); };
  ColumnCodes matrix{.awq = format.kind == CodeFormat::Kind::kAwq,
                     .bits = format.bits,
                     .plus = format.zeros_less_one ? 1u : 0u,
                     .codes = part(".qweight"),
                     .scales = part(".scales"),
                     .zeros = part(".qzeros"),
                     .order = part(".g_idx")};
  const std::vector<int64_t>& words = matrix.codes.entry->shape;
  const auto refuse = [&](const char* why) {
    fail(ErrorCode::kIo, "[{}] tensor {} {}", matrix.codes.file->path(), matrix.codes.name, why);
  };
  if (!matrix.scales || !matrix.zeros) refuse("has no scales and zero points next to it (.scales, .qzeros)");
  if (matrix.codes.entry->type != "I32" || words.size() != 2) refuse("must be a matrix of I32");
  const int64_t per = matrix.in_a_word();
  // Sizes are those of tensors in the file, which the reader of its header compared with its length.
  matrix.cols = matrix.awq ? words[0] : words[0] * per;
  matrix.rows = matrix.awq ? words[1] * per : words[1];
  matrix.group = format.group > 0 ? format.group : std::max<int64_t>(matrix.cols, 1);
  matrix.groups = ceil_div(matrix.cols, matrix.group);
  if (!matrix.scales.is_floats({matrix.groups, matrix.rows}))
    refuse("has scales that do not fit; they must be floats [columns / group_size, rows]");
  if (!matrix.zeros.is("I32", {matrix.groups, ceil_div(matrix.rows, per)}))
    refuse(
        "has zero points that do not fit; they must be I32 [columns / group_size, rows / codes in a word]");
  if (matrix.order && !matrix.order.is("I32", {matrix.cols}))
    refuse("has a g_idx that does not fit; it must be I32 [columns]");
  ComposedWeight made{.parts = {matrix.codes, matrix.scales, matrix.zeros},
                      .what = matrix.awq ? "AWQ" : "GPTQ",
                      .dtype = *matrix.scales.entry->dtype,
                      .shape = {matrix.rows, matrix.cols},
                      .floats = {}};
  if (matrix.order) made.parts.push_back(matrix.order);
  made.floats = [shared = std::make_shared<const ColumnCodes>(std::move(matrix))] { return expand(*shared); };
  return made;
}

}  // namespace

ComposedByName compose_column_codes(const CodeFormat& format, const std::vector<std::string>& names,
                                    const FindStored& find) {
  ComposedByName made;
  for (const std::string& name : names)
    if (name.ends_with(kQweight)) {
      const std::string base = name.substr(0, name.size() - kQweight.size());
      made.emplace(base + ".weight", compose(format, base, find));
    }
  return made;
}

}  // namespace heddle
