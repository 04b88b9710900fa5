// Tensors by name, wherever they lie: in a file (TensorFile, GgufFile), or in a caller's memory (CallerTensors).
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/engine/model.h"
#include "heddle/model/hf/tensor_table.h"

namespace heddle {

class MemorySpace;

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual const std::string& path() const = 0;  // names it in messages
  virtual const std::map<std::string, TensorEntry>& tensors() const = 0;
  // Throws when the name is missing, heddle does not support its element type, or its bytes are damaged.
  virtual TensorView view(const std::string& name) const = 0;
  // The bytes of a tensor of any type, row after row. They are not checked.
  virtual std::span<const std::byte> bytes(const std::string& name) const = 0;
  // Copies bytes of a tensor, row after row, from `begin` on.
  virtual void copy_part(const std::string& name, size_t begin, std::span<std::byte> to) const {
    std::ranges::copy(bytes(name).subspan(begin, to.size()), to.begin());
  }
  // True if two tensors are known to be one memory, without a look at it.
  virtual bool is_one_memory(const std::string&, const std::string&) const { return false; }
  // The values of a tensor whose entry has a type `floats`.
  virtual std::vector<std::byte> floats(const std::string&) const { return {}; }
  // The code that it can have in memory, or why it has none; and its codes, if it has one.
  virtual StoredCoding coding(const std::string&) const { return {}; }
  virtual SourceCodes codes(const std::string&) const { return {}; }
  // Throws Error where a checksum of the tensor's storage says that its bytes are others. Reads them once.
  virtual void require_undamaged(const std::string& name) const = 0;
  // Throws Error where the tensors changed since they were described.
  virtual void require_unchanged() const = 0;
  // The address of a tensor in `space`, if it lies there row after row; null: only bytes() has it.
  virtual const std::byte* far(const std::string&, const MemorySpace&) const { return nullptr; }
  // Gives the memory of a tensor back, if it can be read again. Views of it become invalid.
  virtual void forget(const std::string& name) = 0;
};

}  // namespace heddle
