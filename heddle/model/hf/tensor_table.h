// Describes the tensors of a file, whatever its format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/dtype.h"

namespace heddle {

// A tensor in row-major order. `data` is aligned for its element type.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  std::string file;
};

// A tensor as the file describes it.
struct TensorEntry {
  std::string type;            // as safetensors writes it: "BF16"
  std::optional<DType> dtype;  // nothing for types that heddle does not support, such as F64
  int bits = 0;                // an element takes so many
  std::vector<int64_t> shape;
  std::vector<int64_t> strides = {};  // in elements; none: row after row
  size_t begin = 0;                   // byte of the first element in the file
  size_t size = 0;                    // bytes, row after row
  std::optional<DType> floats = {};   // a type of TensorSource's own, which it expands to these
};

// The type, dtype and bits of elements that safetensors calls `type`; no bits: it has no such type.
TensorEntry entry_of_type(std::string_view type);

// Copies the elements of a tensor with strides, row after row. `from` begins with its first one. `to` has room for all;
// `entry` needs bits, shape and strides.
void copy_rows(const std::byte* from, const TensorEntry& entry, std::span<std::byte> to);

// Bytes of a file whose CRC-32 the file says.
struct SummedBytes {
  size_t begin = 0, size = 0;
  uint32_t checksum = 0;
};

struct TensorTable {
  std::map<std::string, TensorEntry> tensors;
  std::vector<SummedBytes> sums = {};  // by `begin`; none lies in another
  std::map<std::string, std::string> metadata;
};

// Text such as "[40, 12]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace heddle
