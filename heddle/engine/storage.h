// Memory that outlives a step: of weights, KV pages, arenas and step records.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "heddle/ir/executor/executor.h"

namespace heddle {

// Owns 64-byte aligned memory of the host, zeroed by the system when first touched.
class HostMemory {
 public:
  // x86-64 has these, and arm64 where its small pages have 4 KB.
  static constexpr size_t kLargePage = size_t{1} << 21;

  // `what` it is for, in the Error when it cannot be had. `sparse`: it fills slowly, so large pages would hold memory that
  // is not in use.
  HostMemory(size_t bytes, std::string_view what, bool sparse = false);
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Zeroed memory for an executor's buffers, in a space of its backend or (null) in the host's memory.
class Storage {
 public:
  // `what` and `sparse`: see HostMemory.
  Storage(size_t bytes, MemorySpace* space, std::string_view what, bool sparse = false);
  // Takes host memory over, or copies its content to the space.
  Storage(HostMemory filled, MemorySpace* space);
  Storage(Storage&& other) noexcept;
  Storage& operator=(Storage&& other) noexcept;
  ~Storage();
  std::byte* data() const { return data_; }  // for the executor
  size_t size() const { return size_; }
  void write(const void* from, size_t bytes);
  void read(void* to, size_t bytes) const;

 private:
  MemorySpace* space_ = nullptr;
  std::optional<HostMemory> host_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace heddle
