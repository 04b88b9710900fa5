// Devices as people write them: "cpu", "cuda" for the GPU with the most free memory, "cuda:1" for the second one.
#pragma once

#include <optional>
#include <string>

#include "heddle/engine/default_executor.h"

namespace heddle {

struct DeviceName {
  enum class Kind : u8 {
    kCpu,
    kGpu,
    kNumber,  // "1": cuda:1; "0" is the CPU where there is no GPU
  };
  Kind kind = Kind::kCpu;
  std::optional<i32> ordinal;

  std::string text() const;  // "cuda:1"
};

// Throws Error(kInvalidArgument) for any other text; `where` names the argument. A card or an architecture is none: it says what
// programs are compiled for.
DeviceName parse_device(const std::string& text, const std::string& where);

// The executor of such a device, where none is named. Whether it can run here is seen later.
DefaultExecutor executor_on(const DeviceName& device);
// Throws Error(kInvalidArgument) where `executor` does not run on such a device. Returns the ordinal.
i32 ordinal_for(const std::string& executor, const DeviceName& device, const std::string& where);

}  // namespace heddle
