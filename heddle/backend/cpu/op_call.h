// Ops by themselves on a CPU: the tile bodies of the threads executor, by the calling thread and, for large calls, by as
// many helpers as the caller allows. How many makes no difference to any bit.
#pragma once

#include "heddle/ir/op_call.h"

namespace heddle {

OpCaller& cpu_op_calls();

}  // namespace heddle
