#include "heddle/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <future>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

#include "heddle/base/control_group.h"
#include "heddle/base/thread.h"

namespace heddle {
namespace {

int count_of(int threads) {
  return threads > 0 ? threads : allowed_cores();
}

// Starts threads 1 to wanted - 1, or as many as the system allows. Each runs body(number), which outlives them.
std::vector<Thread> start_threads(int wanted, const std::function<void(int)>& body) {
  std::vector<Thread> threads;
  threads.reserve(size_t(std::max(1, wanted)));
  for (int t = 1; t < wanted; ++t) {
    Result<Thread> started = Thread::try_start([&body, t] { body(t); });
    if (!started) {
      warn_of_few_threads(size_t(wanted), threads.size() + 1, started.message());
      break;
    }
    threads.push_back(std::move(started).value());
  }
  return threads;
}

// Keeps the exception of the lowest-numbered job that throws.
class FirstFailure {
 public:
  void keep(size_t number) {
    std::lock_guard lock(mutex_);
    if (failure_ && number > number_) return;
    number_ = number, failure_ = std::current_exception();
    failed_ = true;
  }
  bool failed() const { return failed_; }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  size_t number_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<int> allowed_core_ids() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> ids;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return ids;
  for (int id = 0; id < CPU_SETSIZE; ++id)
    if (CPU_ISSET(id, &set)) ids.push_back(id);
  return ids;
}

namespace {

// Read once: this is asked for with each call of an op.
const CpuQuota& quota() {
  static const CpuQuota quota = cpu_quota();
  return quota;
}

int cores_by_affinity() {
  return std::max(1, int(allowed_core_ids().size()));
}

}  // namespace

int allowed_cores() {
  const int cores = cores_by_affinity();
  return quota().cores > 0 ? int(std::min(std::ceil(quota().cores), double(cores))) : cores;
}

std::string describe_cores() {
  const int cores = allowed_cores(), of = cores_by_affinity();
  const std::string reason = cores < of
                                 ? fmt::format("by the CPU quota of {} cores in {}, of {} by its affinity",
                                               quota().cores, quota().group, of)
                                 : "by its affinity";
  return fmt::format("{} cores for this process, {}", cores, reason);
}

void parallel_for(size_t jobs, int threads, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next = 0;
  FirstFailure failure;
  const std::function<void(int)> work = [&](int) {
    for (size_t i; !failure.failed() && (i = next++) < jobs;) try {
        job(i);
      } catch (...) {
        failure.keep(i);
      }
  };
  {
    const auto others = start_threads(int(std::min(size_t(count_of(threads)), jobs)), work);
    work(0);
  }
  failure.rethrow();
}

int run_together(int threads, const std::function<void(int, int)>& work) {
  FirstFailure failure;
  std::promise<int> started;
  const std::shared_future<int> count = started.get_future().share();
  const std::function<void(int)> run = [&](int thread) {
    try {
      work(thread, count.get());
    } catch (...) {
      failure.keep(size_t(thread));
    }
  };
  {
    const auto others = start_threads(count_of(threads), run);
    started.set_value(int(others.size()) + 1);
    run(0);
  }
  failure.rethrow();
  return count.get();
}

}  // namespace heddle
