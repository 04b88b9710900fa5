#include "heddle/base/progress.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/parallel.h"
#include "heddle/base/thread.h"

namespace heddle {
namespace {

// Between two tellings: an estimate of the time that is left counts down.
constexpr std::chrono::milliseconds kPause{200};

thread_local const OnProgress* listener = nullptr;

// Jobs that run on other threads, while this one tells how many have ended.
class ToldJobs {
 public:
  ToldJobs(const char* doing, const char* what, size_t jobs, const std::function<void(size_t)>& job)
      : doing_(doing), what_(what), jobs_(jobs), job_(job) {}

  // For the thread of the work.
  void work(int threads) {
    try {
      parallel_for(jobs_, threads, [this](size_t index) { one(index); });
    } catch (...) {
      fault_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }

  // For the thread that listens. Returns when the work has ended.
  void tell() {
    std::unique_lock lock(mutex_);
    for (size_t told = 0; !ended_; told = done_) {
      std::exception_ptr refusal = refusal_;
      lock.unlock();
      try {
        if (!refusal) tell_progress({doing_, what_, told, jobs_});
      } catch (...) {
        refusal = std::current_exception();
      }
      lock.lock();
      refusal_ = refusal;
      changed_.wait_for(lock, kPause, [&] { return ended_ || done_ != told; });
    }
  }

  void rethrow() const {
    if (refusal_) std::rethrow_exception(refusal_);
    if (fault_) std::rethrow_exception(fault_);
  }

 private:
  void one(size_t index) {
    {
      const std::lock_guard lock(mutex_);
      if (refusal_) return;
    }
    job_(index);
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_one();
  }

  const char *const doing_, *const what_;
  const size_t jobs_;
  const std::function<void(size_t)>& job_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t done_ = 0;
  bool ended_ = false;
  std::exception_ptr fault_, refusal_;  // what a job threw, and what the listener did
};

}  // namespace

ProgressScope::ProgressScope(OnProgress on_progress) : own_(std::move(on_progress)), before_(listener) {
  listener = own_ ? &own_ : nullptr;
}

ProgressScope::~ProgressScope() {
  listener = before_;
}

bool has_progress_listener() {
  return listener != nullptr;
}

OnProgress progress_listener() {
  return listener ? *listener : OnProgress();
}

void tell_progress(const Progress& progress) {
  if (listener) (*listener)(progress);
}

void parallel_for_with_progress(const char* doing, const char* what, size_t jobs, int threads,
                                const std::function<void(size_t job)>& job) {
  if (!listener || jobs == 0) return parallel_for(jobs, threads, job);
  ToldJobs told(doing, what, jobs, job);
  {
    // The work has a thread of its own, so that this one can tell of it while a job takes minutes.
    const Result<Thread> work = Thread::try_start([&] { told.work(threads); });
    if (!work) return parallel_for(jobs, threads, job);
    told.tell();
  }
  told.rethrow();
  tell_progress({doing, what, jobs, jobs});
}

namespace {

std::string time_left(double seconds) {
  if (seconds < 1) return "";
  if (seconds < 20) return fmt::format(", about {:.0f} s left", seconds);
  if (seconds < 90) return fmt::format(", about {:.0f} s left", std::ceil(seconds / 5) * 5);
  if (seconds < 5400) return fmt::format(", about {:.0f} min left", seconds / 60);
  return fmt::format(", about {:.1f} h left", seconds / 3600);
}

}  // namespace

std::string ProgressText::of(const Progress& progress, double seconds) {
  constexpr double kSilent = 2;
  all_ = progress.all;  // may turn out to be more, or less
  if (doing_ != progress.doing || progress.done < done_) {
    doing_ = progress.doing, first_ = progress.done;
    began_ = changed_ = seconds;
  } else if (progress.done != done_) {
    changed_ = seconds;
  }
  done_ = progress.done;
  const double each = done_ > first_ ? (changed_ - began_) / double(done_ - first_) : 0;
  // The time that was left after the last change, less the time since.
  const double left = each * double(all_ - done_) - (seconds - changed_);
  const std::string when = seconds - began_ < kSilent ? "" : time_left(left);
  if (std::string_view(progress.what) == "bytes")
    return fmt::format("{} {:.0f} % of {:.1f} MB{}", doing_,
                       all_ > 0 ? 100.0 * double(done_) / double(all_) : 100.0, 1e-6 * double(all_), when);
  return fmt::format("{} {} of {} {}{}", doing_, done_, all_, progress.what, when);
}

}  // namespace heddle
