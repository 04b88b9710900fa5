#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/float16.h"
#include "heddle/base/memory.h"
#include "heddle/base/parallel.h"
#include "heddle/model/hf/four_bit_codes.h"

namespace heddle {
namespace {

constexpr int64_t kGroup = 16;  // columns that share a scale
constexpr std::string_view kDivisor = "_global_scale", kFactor = "_scale_2";

struct Nvfp4 {
  int64_t rows = 0, cols = 0;
  bool divides = false;  // scales are divided by `all`, not multiplied
  StoredTensor codes, scales, all;
};

float number_at(const StoredTensor& tensor, size_t index) {
  const DType type = *tensor.entry->dtype;
  return float(load_number(type, tensor.bytes().data() + index * size_t(size_of(type))));
}

std::vector<std::byte> expand(const Nvfp4& matrix) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  const auto codes = matrix.codes.bytes();
  const float all = number_at(matrix.all, 0);
  const auto cols = size_t(matrix.cols), groups = size_t(matrix.cols / kGroup);
  auto made = make_vector<std::byte>(size_t(matrix.rows) * cols * sizeof(uint16_t),
                                     fmt::format("the tensor {} as floats", matrix.codes.name));
  auto* to = reinterpret_cast<uint16_t*>(made.data());
  parallel_for(size_t(matrix.rows), 0, [&](size_t row) {
    for (size_t group = 0; group < groups; ++group) {
      const float stored = number_at(matrix.scales, row * groups + group);
      const float scale = matrix.divides ? stored / all : stored * all;
      for (size_t i = 0; i < size_t(kGroup); ++i) {
        const size_t at = row * cols + group * kGroup + i;
        to[at] = float_to_bf16(kValues[size_t(codes[at / 2]) >> (4 * (at % 2)) & 15] * scale);
      }
    }
  });
  return made;
}

ComposedWeight compose(Nvfp4 matrix) {
  const auto refuse = [&](const char* why) {
    fail(ErrorCode::kIo, "[{}] tensor {} of NVFP4 {}", matrix.codes.file->path(), matrix.codes.name, why);
  };
  const std::vector<int64_t>& bytes = matrix.codes.entry->shape;
  if (matrix.codes.entry->type != "U8" || bytes.size() != 2)
    refuse("must be a matrix of U8, two codes in a byte");
  matrix.rows = bytes[0], matrix.cols = 2 * bytes[1];
  if (matrix.cols % kGroup != 0) refuse("must have rows of whole groups of 16 codes");
  if (!matrix.scales || !matrix.scales.is("F8_E4M3", {matrix.rows, matrix.cols / kGroup}))
    refuse("has no scales next to it that fit; they must be F8_E4M3 [rows, columns / 16], in _scale");
  const std::vector<int64_t>& one = matrix.all.entry->shape;
  if (matrix.all.entry->type != "F32" || (!one.empty() && one != std::vector<int64_t>{1}))
    refuse("has a scale of the whole matrix that does not fit; it must be one F32");
  if (matrix.divides && number_at(matrix.all, 0) == 0) refuse("has a divisor of its scales that is 0");
  ComposedWeight made{.parts = {matrix.codes, matrix.scales, matrix.all},
                      .what = "NVFP4",
                      .dtype = DType::kBf16,
                      .shape = {matrix.rows, matrix.cols},
                      .floats = {}};
  made.floats = [shared = std::make_shared<const Nvfp4>(std::move(matrix))] { return expand(*shared); };
  return made;
}

}  // namespace

ComposedByName compose_nvfp4(const std::vector<std::string>& names, const FindStored& find) {
  ComposedByName made;
  for (const std::string& name : names)
    for (const std::string_view end : {kDivisor, kFactor}) {
      if (!name.ends_with(end)) continue;
      const std::string weight = name.substr(0, name.size() - end.size());
      const bool divides = end == kDivisor;
      const StoredTensor codes = find(divides ? weight + "_packed" : weight);
      if (codes && codes.entry->type == "U8")
        made.emplace(
            weight,
            compose(
                {.divides = divides, .codes = codes, .scales = find(weight + "_scale"), .all = find(name)}));
    }
  return made;
}

}  // namespace heddle
