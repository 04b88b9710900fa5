#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/integer.h"
#include "heddle/base/memory.h"
#include "heddle/base/parallel.h"
#include "heddle/model/hf/config.h"
#include "heddle/model/hf/four_bit_codes.h"

namespace heddle {
namespace {

constexpr std::string_view kState = ".quant_state.bitsandbytes__";

struct BlockCodes {
  std::vector<int64_t> shape;
  int64_t count = 1, block = 64, nested_block = 256;
  float offset = 0;  // added to nested scales
  DType dtype = DType::kBf16;
  StoredTensor codes, state, scales, map, nested_scales, nested_map;
};

float float_at(const StoredTensor& tensor, size_t index) {
  return float(load_number(DType::kF32, tensor.bytes().data() + index * sizeof(float)));
}

[[noreturn]] void refuse(const BlockCodes& matrix, std::string_view why) {
  fail(ErrorCode::kIo, "[{}] tensor {} of bitsandbytes {}", matrix.codes.file->path(), matrix.codes.name,
       why);
}

// The largest value of a block.
float scale_of(const BlockCodes& matrix, size_t block) {
  if (!matrix.nested_scales) return float_at(matrix.scales, block);
  const float value = float_at(matrix.nested_map, size_t(matrix.scales.bytes()[block]));
  return value * float_at(matrix.nested_scales, block / size_t(matrix.nested_block)) + matrix.offset;
}

std::vector<std::byte> expand(const BlockCodes& matrix) {
  std::array<float, 16> values{};
  for (size_t code = 0; code < values.size(); ++code) values[code] = float_at(matrix.map, code);
  const auto codes = matrix.codes.bytes();
  const auto width = size_t(size_of(matrix.dtype)), count = size_t(matrix.count), size = size_t(matrix.block);
  auto made =
      make_vector<std::byte>(count * width, fmt::format("the tensor {} as floats", matrix.codes.name));
  parallel_for(size_t(ceil_div(matrix.count, matrix.block)), 0, [&](size_t block) {
    const float scale = scale_of(matrix, block);
    for (size_t i = block * size; i < std::min(count, (block + 1) * size); ++i) {
      const size_t code = size_t(codes[i / 2]) >> (4 * (1 - i % 2)) & 15;  // the first in the high bits
      store_number(matrix.dtype, made.data() + i * width, double(values[code] * scale));
    }
  });
  return made;
}

// Reads the tensor of JSON.
void read_state(BlockCodes& matrix) {
  constexpr int kMaxBlock = 1 << 20;
  constexpr double kMaxDim = 1e12;
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"bfloat16", DType::kBf16}, {"float16", DType::kF16}, {"float32", DType::kF32}};
  const auto bytes = matrix.state.bytes();
  const Config state = Config::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                     fmt::format("{}: {}", matrix.state.file->path(), matrix.state.name));
  matrix.block = state.required_int("blocksize", 1, kMaxBlock);
  const std::string type = state.required_string("dtype");
  const auto found =
      std::ranges::find(kTypes, std::string_view(type), &std::pair<std::string_view, DType>::first);
  if (found == std::end(kTypes)) state.refuse("dtype", "it may be bfloat16, float16 or float32");
  matrix.dtype = found->second;
  for (const double dim : state.optional_numbers("shape", 1, kMaxDim)) {
    matrix.shape.push_back(int64_t(dim));
    if (__builtin_mul_overflow(matrix.count, matrix.shape.back(), &matrix.count))
      state.reject("shape", "has too many elements");
  }
  if (!matrix.nested_scales) return;
  matrix.nested_block = state.required_int("nested_blocksize", 1, kMaxBlock);
  matrix.offset = float(state.required_number("nested_offset", -1e30, 1e30));
}

ComposedWeight compose(BlockCodes matrix) {
  read_state(matrix);
  const int64_t bytes = matrix.count / 2 + matrix.count % 2;
  if (matrix.codes.entry->size != size_t(bytes))
    refuse(matrix, fmt::format("has {} bytes; a shape of {} makes it {}", matrix.codes.entry->size,
                               shape_text(matrix.shape), bytes));
  const int64_t blocks = ceil_div(matrix.count, matrix.block);
  if (!matrix.map || !matrix.map.is("F32", {16})) refuse(matrix, "has no quant_map of 16 F32 next to it");
  const char* type = matrix.nested_scales ? "U8" : "F32";
  if (!matrix.scales || !matrix.scales.is(type, {blocks}))
    refuse(matrix, fmt::format("has no absmax next to it that fits; it must be {} [{}]", type, blocks));
  ComposedWeight made{.parts = {matrix.codes, matrix.state, matrix.scales, matrix.map},
                      .what = "bitsandbytes",
                      .dtype = matrix.dtype,
                      .shape = matrix.shape,
                      .floats = {}};
  if (matrix.nested_scales) {
    const int64_t nested = ceil_div(blocks, matrix.nested_block);
    if (!matrix.nested_scales.is("F32", {nested}) || !matrix.nested_map ||
        !matrix.nested_map.is("F32", {256}))
      refuse(matrix,
             fmt::format("has no nested_absmax F32 [{}] and nested_quant_map F32 [256] next to it", nested));
    made.parts.insert(made.parts.end(), {matrix.nested_scales, matrix.nested_map});
  }
  made.floats = [shared = std::make_shared<const BlockCodes>(std::move(matrix))] { return expand(*shared); };
  return made;
}

}  // namespace

ComposedByName compose_bitsandbytes(const std::vector<std::string>& names, const FindStored& find) {
  ComposedByName made;
  for (const std::string& name : names) {
    const size_t end = name.rfind(kState);
    if (end == name.npos) continue;
    const std::string weight = name.substr(0, end);
    const auto part = [&](const char* what) { return find(weight + what); };
    BlockCodes matrix{.shape = {},
                      .codes = find(weight),
                      .state = find(name),
                      .scales = part(".absmax"),
                      .map = part(".quant_map"),
                      .nested_scales = part(".nested_absmax"),
                      .nested_map = part(".nested_quant_map")};
    if (!matrix.codes)
      fail(ErrorCode::kIo, "[{}] tensor {} has no codes next to it, which {} would be",
           matrix.state.file->path(), name, weight);
    made.emplace(weight, compose(std::move(matrix)));
  }
  return made;
}

}  // namespace heddle
