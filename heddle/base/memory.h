// How much memory this process may still take.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// In bytes: what the system has for new programs without swapping, or less if the process or its control
// group has a limit. -1 when the system does not say.
i64 available_memory();

}  // namespace heddle
