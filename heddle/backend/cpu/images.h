// Stale reads: each worker has an image of the mutable memory of its own. A store reaches another worker's
// image only over an edge that makes it visible; a tagged edge carries the words of tagged buffers alone.
#pragma once

#include <vector>

#include "heddle/backend/cpu/scalar_block.h"
#include "heddle/ir/executor.h"

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
  void wait(u32 worker, const Instruction& instruction, int index);

 private:
  struct Plane {  // an allocation that tiles write
    std::byte* real;
    i64 offset;  // in an image
    i64 bytes;
    bool tagged;
  };
  struct Store {
    u64 order;
    i64 offset;
    std::vector<std::byte> data;
  };
  // Stores of each worker; index 0: plain, 1: into tagged buffers.
  using Log = std::vector<Store>;
  // How many stores of each worker are known, plain and tagged.
  struct Clock {
    std::vector<size_t> known[2];
  };

  void learn(u32 worker, const Clock& clock, bool tagged_only);

  std::vector<Plane> planes_;
  std::vector<i64> buffer_offset_;  // in an image; -1: not mutable
  Memory real_;
  std::vector<std::vector<std::byte>> images_;
  std::vector<std::array<Log, 2>> logs_;
  std::vector<Clock> clocks_, counter_clocks_;
  u64 order_ = 0;
};

}  // namespace heddle
