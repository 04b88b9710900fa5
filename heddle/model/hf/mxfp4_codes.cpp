#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/model/hf/expansion.h"
#include "heddle/model/hf/four_bit_codes.h"

namespace heddle {
namespace {

constexpr int64_t kMxfp4Group = 2 * int64_t(kMxfp4BlockBytes);  // columns that share a scale

ComposedWeight compose(const StoredTensor& codes, const StoredTensor& scales) {
  const auto refuse = [&](const char* why) {
    fail(ErrorCode::kIo, "[{}] tensor {} of MXFP4 {}", codes.file->path(), codes.name, why);
  };
  const std::vector<int64_t>& bytes = codes.entry->shape;
  if (bytes.size() != 2) refuse("must be a matrix of U8, two codes in a byte");
  const int64_t rows = bytes[0], cols = 2 * bytes[1];
  if (cols % kMxfp4Group != 0) refuse("must have rows of whole groups of 32 codes");
  if (!scales || !scales.is("U8", {rows, cols / kMxfp4Group}))
    refuse("has no scales next to it that fit; they must be U8 [rows, columns / 32], in _scale");
  return {.parts = {codes, scales},
          .what = "MXFP4",
          .dtype = DType::kBf16,
          .shape = {rows, cols},
          .floats = [codes, scales] { return mxfp4_as_bf16(codes.bytes(), scales.bytes()); }};
}

}  // namespace

ComposedByName compose_mxfp4(const std::vector<std::string>& names, const FindStored& find) {
  constexpr std::string_view kEnd = "_packed";
  ComposedByName made;
  for (const std::string& name : names) {
    if (!name.ends_with(kEnd)) continue;
    const std::string weight = name.substr(0, name.size() - kEnd.size());
    const StoredTensor codes = find(name);
    if (codes.entry->type == "U8" && !find(weight + "_global_scale"))
      made.emplace(weight, compose(codes, find(weight + "_scale")));
  }
  return made;
}

}  // namespace heddle
