// Weights in memory: packed once into panels at load, vectors in f32, shared by all programs of a model.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/engine/model.h"
#include "heddle/engine/storage.h"

namespace heddle {

class WeightStore {
 public:
  // Packs every weight and vector that `graph` names, with `threads` threads. Returns the source's memory to
  // the system piece by piece, so that the peak stays near one copy. Throws when a tensor is missing, has
  // another shape or dtype, or holds NaN or infinity. `space`: where they go, see Storage.
  WeightStore(const Model& model, const ModelGraph& graph, int threads, MemorySpace* space,
              const LoadProgress& progress);

  // Packs the tensors that `values` has over those of `graph`, which the store was made of; what it has not stays. Throws
  // Error, as the constructor does, before it changes anything, and then calls `before`. An exception after that leaves
  // some weights old and some new. Tensors in the executor's memory are packed there, without the host.
  void update(const ModelGraph& graph, const WeightValues& values, int threads,
              const std::function<void()>& before);

  bool has(const std::string& name) const { return entries_.contains(name); }
  std::byte* data(const std::string& name) const;
  const u64* panels(const std::string& name) const;  // null for vectors
  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Storage data;
    std::optional<Storage> panels;  // for a matrix: u64 offset of each panel
  };
  void add(const std::string& name, Storage packed, const std::vector<u64>& panels);

  MemorySpace* space_;
  std::map<std::string, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace heddle
