// Keeps kernels of single ops. Each is compiled when it is first wanted and loaded once for each context. It stays
// loaded as long as its context, because a call may be under way at any time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "heddle/backend/cuda/runtime/device.h"
#include "heddle/ir/op.h"

namespace heddle::cuda {

struct StandaloneKernel {
  FunctionHandle function = nullptr;
  i64 chip_bytes = 0;   // dynamic shared memory that it may have
  i32 max_threads = 0;  // a CTA
};

class StandaloneKernels {
 public:
  static StandaloneKernels& of_process();

  // Returns the kernel for calls with such arguments and this configuration (without values: the op's default) in the
  // current context, whose id in the driver is `context`. Compiles and loads the kernel if nobody has; other threads
  // that want the same one wait for it. Works while a stream is captured.
  StandaloneKernel get(const OpSpec& op, const std::byte* args, const OpConfig& config, u64 context,
                       const Device& device);
  // Returns the kernels of a plan's launches, in the same way.
  std::vector<StandaloneKernel> of_plan(const OpSpec& op, const std::byte* args, const KernelPlan& plan,
                                        u64 context, const Device& device);
  // Counts the kernels that were wanted so far, in all contexts.
  size_t count();

 private:
  struct Entry {
    std::once_flag once;
    std::vector<StandaloneKernel> kernels;
  };
  std::shared_ptr<Entry> entry_of(u64 context, const std::string& made_for);

  std::mutex mutex_;
  std::map<std::pair<u64, std::string>, std::shared_ptr<Entry>>
      entries_;  // by context, and what a kernel is made for
};

}  // namespace heddle::cuda
