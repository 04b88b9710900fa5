// A thread with a stack of a fixed size. The system's default follows `ulimit -s`, and with 64 KB of it a compiler of
// device code or a parser ends the process. A thread that cannot start is a Result, so that threads that did start can be
// joined, and the message can count them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <pthread.h>

#include "heddle/base/result.h"

namespace heddle {

// Joined when it goes.
class Thread {
 public:
  static constexpr size_t kStackBytes = size_t{8}
                                        << 20;  // Linux's usual limit; only what is used takes memory

  // `body` must not throw. On failure the message is the system's reason.
  static Result<Thread> try_start(std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();
  void detach();

 private:
  explicit Thread(pthread_t id) : id_(id), owned_(true) {}

  pthread_t id_ = {};
  bool owned_ = false;
};

// Calls `body`, which must not throw: here, or on a Thread where the main thread's stack is limited to less than one has.
void with_large_stack(const std::function<void()>& body);

// Says that only `started` of `wanted` threads could start, and what helps.
std::string threads_refused(size_t wanted, size_t started, const std::string& why);
// Says so in a line on stderr; for work that goes on with the threads that started.
void warn_of_few_threads(size_t wanted, size_t started, const std::string& why);

}  // namespace heddle
