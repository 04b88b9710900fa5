// Kernels of single ops, compiled where they are wanted first and loaded once for each context. They stay loaded as long
// as their context: a call may be under way at any time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "heddle/backend/cuda/runtime/device.h"
#include "heddle/ir/op.h"

namespace heddle::cuda {

struct StandaloneKernel {
  FunctionHandle function = nullptr;
  i64 chip_bytes = 0;  // dynamic shared memory that it may have
};

class StandaloneKernels {
 public:
  static StandaloneKernels& of_process();

  // For calls with such arguments in the context that is current, which is `context` for the driver. Compiles and loads it
  // where nobody has; others that want the same one wait for it. Works while a stream is captured.
  StandaloneKernel get(const OpSpec& op, const std::byte* args, u64 context, const Device& device);
  // Kernels that were wanted so far, in all contexts.
  size_t count();

 private:
  struct Entry {
    std::once_flag once;
    StandaloneKernel kernel;
  };

  std::mutex mutex_;
  std::map<std::pair<u64, std::string>, std::shared_ptr<Entry>>
      entries_;  // by context, and what a kernel is made for
};

}  // namespace heddle::cuda
