// Chooses the executor of a model when none is named: the GPU's, if there is one; and the GPU, if there are several.
#pragma once

#include <string>

#include "heddle/base/types.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

constexpr const char* kAutoExecutor = "auto";
// The executors of a GPU and of a CPU, where nobody names one.
constexpr const char* kGpuExecutor = "megakernel";
constexpr const char* kCpuExecutor = "threads";

struct DefaultExecutor {
  std::string name;
  i32 device = 0;           // the GPU that can be used and has the most free memory
  std::string not_taken;    // "megakernel: why it cannot run here"; empty: it was chosen
  bool has_device = false;  // there is a GPU, but it cannot be used
};

DefaultExecutor default_executor();
// The executor that runs the program where `executor` is asked for: a backend may have another one for steps of many rows.
const ExecutorSpec& executor_for(const std::string& executor, const Program& program);
// The best device for programs that were made for this kind; 0 where there is none.
i32 default_device(const DeviceKind& kind);
// Text such as "megakernel on an H200, cuda:1", or "threads on a Xeon; not megakernel: no NVIDIA driver here".
std::string describe_choice(const std::string& executor, i32 device, bool by_default);

}  // namespace heddle
