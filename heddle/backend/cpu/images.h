// Stale reads: each worker has an image of the mutable memory of its own. A store reaches another worker's
// image only over an edge.
#pragma once

#include <vector>

#include "heddle/backend/cpu/scalar_block.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

class Images {
 public:
  Images(const Program& program, const Memory& memory);

  // The program's memory as `worker` sees it.
  Memory memory(u32 worker) const;
  void begin();   // every image becomes the real memory
  void finish();  // the real memory receives all stores in the order in which they were made
  void stored(u32 worker, std::span<const AccessGuard::Run> runs);
  void signal(u32 worker, u32 counter);
  void wait(u32 worker, u32 counter);

 private:
  struct Plane {  // an allocation that tiles write
    std::byte* real;
    i64 offset;  // in an image
    i64 bytes;
  };
  struct Store {
    u64 order;
    i64 offset;
    std::vector<std::byte> data;
  };
  // The number of known stores of each worker.
  using Clock = std::vector<size_t>;

  std::vector<Plane> planes_;
  std::vector<i64> buffer_offset_;  // in an image; -1: not mutable
  Memory real_;
  std::vector<std::vector<std::byte>> images_;
  std::vector<std::vector<Store>> logs_;  // stores of each worker
  std::vector<Clock> clocks_, counter_clocks_;
  u64 order_ = 0;
};

}  // namespace heddle
