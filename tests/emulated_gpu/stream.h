// Contexts and streams of the emulated GPU.
#pragma once

#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/backend/cuda/runtime/driver.h"

namespace emulated {

using Operation = std::function<void()>;

struct Context {
  unsigned long long id;
  int device;
};

struct Stream {
  Context* context = nullptr;
  bool capturing = false;
  std::vector<Operation> captured;
  std::thread kernel;  // the last launched kernel
  std::atomic<bool> busy = false;
  const bool late = std::getenv("EMULATED_GPU_LATE") != nullptr;
  // A late stream has operations.
  std::deque<Operation> waiting;
  std::atomic<heddle::u64> put = 0, run = 0;
  std::atomic<int> status = heddle::cuda::kSuccess;
  std::recursive_mutex mutex;  // guards `waiting`; an operation may wait for another stream

  // Runs the first operations of a late stream, `count` since it was made.
  void run_to(heddle::u64 count) {
    const std::lock_guard lock(mutex);
    for (; run < count; ++run) {
      if (status == heddle::cuda::kSuccess) waiting.front()();
      waiting.pop_front();
    }
  }

  void launch(Operation work) {
    finish();
    if (late) return work();
    busy = true;
    kernel = std::thread([this, work = std::move(work)] {
      work();
      busy = false;
    });
  }
  void finish() {
    run_to(put);
    if (kernel.joinable()) kernel.join();
  }
};

}  // namespace emulated
