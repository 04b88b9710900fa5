// Runs single ops on a CPU with the tile bodies of the threads executor. The calling thread runs them, and in large
// calls as many helpers as the caller allows. The number of helpers changes no bit of a result.
#pragma once

#include "heddle/ir/call/op_call.h"

namespace heddle {

OpCaller& cpu_op_calls();

}  // namespace heddle
