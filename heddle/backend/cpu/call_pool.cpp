#include "heddle/backend/cpu/call_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include <pthread.h>

#include "heddle/base/thread.h"

namespace heddle {
namespace {

struct Job {
  const std::function<void(i64)>& work;
  const i64 count;
  std::atomic<i64> next = 0;
  std::mutex mutex = {};
  std::exception_ptr failure = nullptr;

  void help() {
    try {
      for (i64 i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }
};

// Looks for `done` as long as a wake-up takes, about 70 us on a virtual machine's core, and gives way to any other thread
// that wants this core. So calls that follow each other need no wake-ups.
template <class Done>
bool wait_awake(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  do {
    if (done()) return true;
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

class Pool {
 public:
  // False: others use the helpers.
  bool run(Job& job, int helpers) {
    const std::unique_lock use(use_, std::try_to_lock);
    if (!use) return false;
    bool wakes = false;
    {
      const std::lock_guard lock(mutex_);
      start(helpers);
      job_ = &job;
      places_ = std::min(helpers, started_);
      wakes = places_ > awake_;
    }
    if (wakes) begin_.notify_all();
    job.help();
    {
      const std::lock_guard lock(mutex_);
      job_ = nullptr, places_ = 0;  // a helper that wakes now finds nothing to do
    }
    if (wait_awake([&] { return busy_ == 0; })) return true;
    std::unique_lock lock(mutex_);
    end_.wait(lock, [&] { return busy_ == 0; });
    return true;
  }

 private:
  // Starts helpers up to this many. Once the system refuses one, the pool keeps to those that it has.
  void start(int helpers) {
    while (started_ < std::min(helpers, most_)) {
      Result<Thread> helper = Thread::try_start([this] { live(); });
      if (!helper) {
        most_ = started_;
        warn_of_few_threads(size_t(helpers) + 1, size_t(started_) + 1, helper.message());
        return;
      }
      std::move(helper).value().detach();
      ++started_;
    }
  }

  [[noreturn]] void live() {
    std::unique_lock lock(mutex_);
    for (;;) {
      begin_.wait(lock, [&] { return places_ > 0; });
      do {
        Job& job = *job_;
        --places_, ++busy_;
        lock.unlock();
        job.help();
        lock.lock();
        if (--busy_ == 0) end_.notify_one();
        ++awake_;
        lock.unlock();
        wait_awake([&] { return places_ > 0; });
        lock.lock();
        --awake_;
      } while (places_ > 0);
    }
  }

  std::mutex use_, mutex_;  // the second guards what follows
  std::condition_variable begin_, end_;
  Job* job_ = nullptr;
  std::atomic<int> places_ = 0, busy_ = 0;  // read without the mutex by threads that wait awake
  int started_ = 0, awake_ = 0;
  int most_ = std::numeric_limits<int>::max();
};

std::atomic<Pool*> the_pool = nullptr;

// Helpers sleep to the end of the process, and their pool with them.
Pool& pool() {
  if (Pool* made = the_pool.load(std::memory_order_acquire)) return *made;
  static const int forgets = ::pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
  (void)forgets;
  auto* made = new Pool;
  Pool* first = nullptr;
  if (the_pool.compare_exchange_strong(first, made)) return *made;
  delete made;
  return *first;
}

}  // namespace

void share_work(int threads, i64 count, const std::function<void(i64)>& work) {
  const i64 helpers = std::min<i64>(threads, count) - 1;
  Job job{.work = work, .count = count};
  if (helpers < 1 || !pool().run(job, int(helpers))) job.help();
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace heddle
