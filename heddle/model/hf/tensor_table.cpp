#include "heddle/model/hf/tensor_table.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle {
namespace {

struct OtherType {
  const char* name;
  int bits;
};
// Types of the format that heddle does not support; a file may still hold them.
constexpr OtherType kOtherTypes[] = {
    {"I16", 16}, {"U16", 16},    {"U32", 32},    {"U64", 64},    {"F64", 64},        {"C64", 64},
    {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
};

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

TensorEntry entry_of_type(std::string_view type) {
  TensorEntry entry;
  entry.type = type;
  if (type.empty()) return entry;  // the format has no name for some types
  for (const DTypeInfo& info : kDTypes)
    if (type == info.safetensors) entry.dtype = info.type, entry.bits = info.bits;
  for (const OtherType& other : kOtherTypes)
    if (type == other.name) entry.bits = other.bits;
  return entry;
}

void copy_rows(const std::byte* from, const TensorEntry& entry, std::span<std::byte> to) {
  const auto width = size_t(entry.bits / 8);
  std::vector<int64_t> index(entry.shape.size());
  int64_t at = 0;
  for (size_t done = 0; done < to.size(); done += width) {
    std::memcpy(&to[done], from + size_t(at) * width, width);
    for (size_t d = index.size(); d-- > 0;) {
      at += entry.strides[d];
      if (++index[d] < entry.shape[d]) break;
      at -= entry.strides[d] * entry.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace heddle
