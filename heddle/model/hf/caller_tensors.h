// Tensors in a caller's memory, of the host or of a device. They are read where they lie, and only while what reads them
// runs: a model keeps none of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/ir/executor/memory_space.h"
#include "heddle/model/hf/tensor_source.h"

namespace heddle {

struct CallerTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides = {};  // in elements, none negative; none: row after row
  const std::byte* data = nullptr;    // its first element
  MemorySpace* space = nullptr;       // where it lies; null: in the host's memory
};

class CallerTensors : public TensorSource {
 public:
  // `path` names them in messages. Throws Error(kInvalidArgument) for two of one name.
  CallerTensors(std::vector<CallerTensor> given, std::string path);

  const std::string& path() const override { return path_; }
  const std::map<std::string, TensorEntry>& tensors() const override { return entries_; }
  TensorView view(const std::string& name) const override;
  // A tensor that is not aligned, does not lie row after row or lies on a device is copied until forget(). Tensors that
  // are one memory share the copy.
  std::span<const std::byte> bytes(const std::string& name) const override;
  void copy_part(const std::string& name, size_t begin, std::span<std::byte> to) const override;
  const std::byte* far(const std::string& name, const MemorySpace& space) const override;
  bool is_one_memory(const std::string& a, const std::string& b) const override {
    return same_memory_.at(a) == same_memory_.at(b);
  }
  void require_undamaged(const std::string&) const override {}
  void require_unchanged() const override;
  void forget(const std::string& name) override;
  // The caller's memory may go: what is asked for from now on is an error.
  void close() {
    closed_ = true;
    copies_.clear();
  }

 private:
  const CallerTensor& at(const std::string& name) const;

  std::string path_;
  std::map<std::string, CallerTensor> given_;
  std::map<std::string, std::string> same_memory_;  // by name: the first one that is this memory
  std::map<std::string, TensorEntry> entries_;
  mutable std::map<std::string, std::vector<std::byte>> copies_;
  bool closed_ = false;
};

}  // namespace heddle
