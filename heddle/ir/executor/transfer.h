// Copies that run while their caller works, between the host's memory and that of an executor. The error of a copy is
// thrown at each wait for its end, and at the end of its queue's work.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

class MemorySpace;

// The end of a copy, which any thread may ask for.
class TransferEnd {
 public:
  virtual ~TransferEnd() = default;
  virtual bool done() const = 0;  // the copy ended, with or without an error
  virtual void wait() const = 0;  // throws the copy's error, each time
};
using TransferEvent = std::shared_ptr<const TransferEnd>;

struct Transfer {
  enum class Way : u8 { kToSpace, kFromSpace, kInSpace };
  Way way = Way::kToSpace;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
  std::vector<TransferEvent> after = {};  // the copy begins when all have ended, whichever queue they are of
};

// Runs copies in the order in which they were started. The memory must stay until the copy's event is done.
class TransferQueue {
 public:
  virtual ~TransferQueue() = default;  // waits for all copies, and drops their errors: call finish() before

  // If one of `after` fails, the copy does not run, and fails with that error.
  TransferEvent start(const Transfer& transfer);
  // Waits for all copies. Throws the first error of those that were started since the last call.
  void finish();

 protected:
  virtual TransferEvent put(const Transfer& transfer) = 0;

 private:
  std::deque<TransferEvent> begun_;
};

// A queue for copies to, from and in a space, or (null) in the host's memory.
std::unique_ptr<TransferQueue> transfers_of(MemorySpace* space);
// Makes one whose copies are done by a thread, with the space's read() and write().
std::unique_ptr<TransferQueue> worker_transfers(MemorySpace* space);

// Memory of the host that copies of a space's queues need not stage: page-locked for a GPU. It is taken in pieces, each
// 128-byte aligned, and given back whole.
class HostArena {
 public:
  HostArena(MemorySpace* space, size_t bytes);
  std::byte* take(size_t bytes);  // throws Error when that is more than what is left
  void reset() { used_ = 0; }     // no copy may still use a piece
  size_t size() const { return size_; }

 private:
  std::shared_ptr<std::byte> memory_;
  size_t size_, used_ = 0;
};

// Plain memory of the host: zeroed, 128-byte aligned.
std::shared_ptr<std::byte> plain_host_memory(size_t bytes);

}  // namespace heddle
