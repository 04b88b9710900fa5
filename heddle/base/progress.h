// Work that takes long says how far it is, to whoever asked for it: a line on a terminal, a bar in Python.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace heddle {

// The progress of some work: "compiling 12 of 47 kernels". Work of several kinds comes one after the other.
struct Progress {
  const char* doing;  // "compiling"
  const char* what;   // what is counted, "kernels"; "bytes" is memory
  size_t done, all;   // done = all ends this kind of work
};

using OnProgress = std::function<void(const Progress&)>;

// Has the work that this thread calls tell `on_progress` how far it is, while the scope lives; the innermost scope hears it. It
// is called on this thread alone, at most a few times a second where nothing has changed. What it throws ends the work
// and is thrown by the call.
class ProgressScope {
 public:
  explicit ProgressScope(OnProgress on_progress);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  OnProgress own_;
  const OnProgress* const before_;
};

// False where nobody listens on this thread.
bool has_progress_listener();
// The listener of this thread, for another thread that works for it; empty where nobody listens.
OnProgress progress_listener();
void tell_progress(const Progress& progress);

// Calls job(0) to job(jobs - 1) as parallel_for does, and tells how many have ended.
void parallel_for_with_progress(const char* doing, const char* what, size_t jobs, int threads,
                                const std::function<void(size_t job)>& job);

// Words for how far work is and how long it may still take: "compiling 12 of 47 kernels, about 3 min left". For work of one kind
// after the other.
class ProgressText {
 public:
  // `seconds`: now, by any clock that rises. Says nothing of the time in the first two seconds.
  std::string of(const Progress& progress, double seconds);

 private:
  std::string doing_;
  size_t all_ = 0, first_ = 0, done_ = 0;
  double began_ = 0, changed_ = 0;
};

}  // namespace heddle
