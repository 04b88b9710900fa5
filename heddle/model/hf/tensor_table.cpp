#include "heddle/model/hf/tensor_table.h"

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

}  // namespace heddle
