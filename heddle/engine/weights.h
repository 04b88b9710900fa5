// Weights in memory: packed once into panels at load, vectors in f32, shared by all programs of a model.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/engine/model.h"
#include "heddle/ir/executor.h"

namespace heddle {

// Owns 64-byte aligned memory, zeroed by the system when first touched.
class Pages {
 public:
  // `sparse`: it fills slowly, so large pages would hold memory that is not in use.
  explicit Pages(size_t bytes, bool sparse = false);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Called while loading, with the bytes done and the bytes in all.
using LoadProgress = std::function<void(size_t done, size_t all)>;

// Zeroed memory for an executor's buffers, in a space of its backend or (null) in the host's memory.
class Storage {
 public:
  // `sparse`: see Pages.
  Storage(size_t bytes, MemorySpace* space, bool sparse = false);
  // Takes host memory over, or copies its content to the space.
  Storage(Pages filled, MemorySpace* space);
  Storage(Storage&& other) noexcept;
  Storage& operator=(Storage&& other) noexcept;
  ~Storage();
  std::byte* data() const { return data_; }  // for the executor
  size_t size() const { return size_; }
  void write(const void* from, size_t bytes);
  void read(void* to, size_t bytes) const;

 private:
  MemorySpace* space_ = nullptr;
  std::optional<Pages> pages_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class WeightStore {
 public:
  // Packs every weight and vector that `graph` names, with `threads` threads. Returns the source's memory to
  // the system piece by piece, so that the peak stays near one copy. Throws when a tensor is missing, has
  // another shape or dtype, or holds NaN or infinity. `space`: where they go, see Storage.
  WeightStore(const Model& model, const ModelGraph& graph, int threads, MemorySpace* space,
              const LoadProgress& progress);

  bool has(const std::string& name) const { return entries_.contains(name); }
  std::byte* data(const std::string& name) const;
  const u64* panels(const std::string& name) const;  // null for vectors
  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Storage data;
    std::optional<Storage> panels;  // for a matrix: u64 offset of each panel
  };
  void add(const std::string& name, Pages packed, const std::vector<u64>& panels);

  MemorySpace* space_;
  std::map<std::string, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace heddle
