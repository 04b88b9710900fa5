// A weight of several tensors, and the tensors as their files have them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/model/hf/tensor_source.h"

namespace heddle {

// A tensor as a file has it; `file` is null where there is none.
struct StoredTensor {
  std::string name;
  TensorSource* file = nullptr;
  const TensorEntry* entry = nullptr;

  explicit operator bool() const { return file != nullptr; }
  std::span<const std::byte> bytes() const { return file->bytes(name); }
  bool is(const char* type, const std::vector<int64_t>& shape) const {
    return entry->type == type && entry->shape == shape;
  }
  // True for floats of that shape.
  bool is_floats(const std::vector<int64_t>& shape) const {
    return entry->dtype && is_wide_float(*entry->dtype) && entry->shape == shape;
  }
};
using FindStored = std::function<StoredTensor(const std::string& name)>;

struct ComposedWeight {
  std::vector<StoredTensor> parts;  // the codes first
  const char* what = "";            // for people: "GPTQ"
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::function<std::vector<std::byte>()> floats;
};
using ComposedByName = std::map<std::string, ComposedWeight>;

}  // namespace heddle
