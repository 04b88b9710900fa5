#include "heddle/serve/workers.h"

#include <utility>

#include "heddle/base/error.h"

namespace heddle {

Workers::Workers(size_t threads) {
  for (size_t i = 0; i < threads; ++i) {
    auto started = Thread::try_start([this] { run(); });
    if (started)
      threads_.push_back(std::move(started).value());
    else if (i == 0)
      fail(ErrorCode::kUnsupported, "[serve] {}", threads_refused(threads, 0, started.message()));
  }
}

void Workers::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  waiting_.push_back(std::move(work));
  came_.notify_one();
}

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    came_.notify_all();
  }
  threads_.clear();  // joins them
}

void Workers::run() {
  for (std::unique_lock lock(mutex_);;) {
    came_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    {
      const auto work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
    }  // what it holds goes without the lock
    lock.lock();
  }
}

}  // namespace heddle
