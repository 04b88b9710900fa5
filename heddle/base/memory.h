// How much memory this process may still take.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// Bytes: what the system has for new programs without swapping, or less where a limit of the process or of its
// control group says so. -1 where the system does not say.
i64 available_memory();

}  // namespace heddle
