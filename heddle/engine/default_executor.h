// Chooses the executor of a model when none is named: the GPU's, if there is one.
#pragma once

#include <string>

#include "heddle/base/types.h"

namespace heddle {

constexpr const char* kAutoExecutor = "auto";

struct DefaultExecutor {
  std::string name;
  std::string not_taken;    // "megakernel: why it cannot run here"; empty: it was chosen
  bool has_device = false;  // there is a GPU, but it cannot be used
};

DefaultExecutor default_executor();
// Text such as "megakernel on an H200, device 1", or "threads on a Xeon; not megakernel: no NVIDIA driver here".
std::string describe_choice(const std::string& executor, i32 device, bool by_default);

}  // namespace heddle
