// On-chip memory of a tile on a CPU: a bump allocator that keeps its chunks from tile to tile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace heddle {

class Scratch {
 public:
  static constexpr size_t kAlign = 64;

  void* take(size_t bytes) {
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) ++chunk_, used_ = 0;
    if (chunk_ == chunks_.size()) {
      const size_t size = std::max(bytes, size_t{1} << 18);
      chunks_.push_back(
          {Bytes(static_cast<std::byte*>(::operator new(size, std::align_val_t(kAlign)))), size});
      used_ = 0;
    }
    void* result = chunks_[chunk_].data.get() + used_;
    used_ += bytes;
    return result;
  }
  struct Mark {
    size_t chunk, used;
  };
  Mark mark() const { return {chunk_, used_}; }
  void reset(Mark mark = {0, 0}) { chunk_ = mark.chunk, used_ = mark.used; }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, std::align_val_t(kAlign)); }
  };
  using Bytes = std::unique_ptr<std::byte[], Free>;
  struct Chunk {
    Bytes data;
    size_t size;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0, used_ = 0;
};

}  // namespace heddle
