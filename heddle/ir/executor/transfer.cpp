#include "heddle/ir/executor/transfer.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"
#include "heddle/base/thread.h"
#include "heddle/ir/executor/memory_space.h"

namespace heddle {
namespace {

constexpr size_t kAlignment = 128;  // bytes

class WorkerCopy : public TransferEnd {
 public:
  explicit WorkerCopy(Transfer transfer) : transfer_(std::move(transfer)) {}

  bool done() const override {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  void wait() const override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return done_; });
    if (error_) std::rethrow_exception(error_);
  }
  void run(MemorySpace* space) {
    std::exception_ptr error;
    try {
      for (const TransferEvent& event : transfer_.after) event->wait();
      copy(space);
    } catch (...) {
      error = std::current_exception();
    }
    transfer_.after.clear();
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    done_ = true;
    ended_.notify_all();
  }

 private:
  void copy(MemorySpace* space) const {
    const auto& [way, to, from, bytes, after] = transfer_;
    if (bytes == 0) return;
    if (!space) {
      std::memmove(to, from, bytes);
    } else if (way == Transfer::Way::kToSpace) {
      space->write(to, from, bytes);
    } else if (way == Transfer::Way::kFromSpace) {
      space->read(to, from, bytes);
    } else {
      auto between = make_vector<std::byte>(bytes, "a copy in an executor's memory");
      space->read(between.data(), from, bytes);
      space->write(to, between.data(), bytes);
    }
  }

  Transfer transfer_;
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool done_ = false;
  std::exception_ptr error_;
};

class WorkerQueue : public TransferQueue {
 public:
  explicit WorkerQueue(MemorySpace* space) : space_(space) {
    Result<Thread> started = Thread::try_start([this] { work(); });
    if (!started) fail(ErrorCode::kUnsupported, "[transfer] {}", threads_refused(1, 0, started.message()));
    thread_.emplace(std::move(started).value());
  }
  ~WorkerQueue() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    came_.notify_all();
    thread_.reset();  // joins it
  }

 protected:
  TransferEvent put(const Transfer& transfer) override {
    auto copy = std::make_shared<WorkerCopy>(transfer);
    {
      const std::lock_guard lock(mutex_);
      copies_.push_back(copy);
    }
    came_.notify_all();
    return copy;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      came_.wait(lock, [this] { return stopping_ || !copies_.empty(); });
      if (copies_.empty()) return;
      const std::shared_ptr<WorkerCopy> copy = std::move(copies_.front());
      copies_.pop_front();
      lock.unlock();
      copy->run(space_);
      lock.lock();
    }
  }

  MemorySpace* const space_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::shared_ptr<WorkerCopy>> copies_;
  bool stopping_ = false;
  std::optional<Thread> thread_;
};

bool ended_well(const TransferEnd& end) {
  if (!end.done()) return false;
  try {
    end.wait();
  } catch (...) {  // finish() throws it
    return false;
  }
  return true;
}

}  // namespace

TransferEvent TransferQueue::start(const Transfer& transfer) {
  while (!begun_.empty() && ended_well(*begun_.front())) begun_.pop_front();
  return begun_.emplace_back(put(transfer));
}

void TransferQueue::finish() {
  std::exception_ptr first;
  for (const TransferEvent& event : std::exchange(begun_, {})) try {
      event->wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

std::unique_ptr<TransferQueue> worker_transfers(MemorySpace* space) {
  return std::make_unique<WorkerQueue>(space);
}

std::unique_ptr<TransferQueue> transfers_of(MemorySpace* space) {
  return space ? space->transfers() : worker_transfers(nullptr);
}

std::shared_ptr<std::byte> plain_host_memory(size_t bytes) {
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  if (size > 0 && !memory) fail_memory(size, "memory for copies");
  std::shared_ptr<std::byte> made(memory, [](std::byte* mine) { std::free(mine); });
  if (size > 0) std::memset(memory, 0, size);
  return made;
}

std::unique_ptr<TransferQueue> MemorySpace::transfers() {
  return worker_transfers(this);
}

std::shared_ptr<std::byte> MemorySpace::host_memory(size_t bytes) {
  return plain_host_memory(bytes);
}

HostArena::HostArena(MemorySpace* space, size_t bytes)
    : memory_(space ? space->host_memory(bytes) : plain_host_memory(bytes)), size_(bytes) {}

std::byte* HostArena::take(size_t bytes) {
  const size_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  require(begin <= size_ && bytes <= size_ - begin, "[arena] {} bytes are asked for; {} of {} are left",
          bytes, size_ - std::min(begin, size_), size_);
  used_ = begin + bytes;
  return memory_.get() + begin;
}

}  // namespace heddle
