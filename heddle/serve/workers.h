// Threads that do short work in the order in which it comes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "heddle/base/thread.h"

namespace heddle {

class Workers {
 public:
  explicit Workers(size_t threads);  // throws Error where none starts
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  void post(std::function<void()> work);  // must not throw; does nothing after stop()
  void stop();                            // when all that was posted is done

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<Thread> threads_;
};

}  // namespace heddle
