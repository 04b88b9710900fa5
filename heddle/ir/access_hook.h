// Lets a tile body that is compiled by itself say what it touches.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// Hears of each access to memory, before it. A plain function, so that code from another compiler can call it.
struct AccessHook {
  void* context;
  void (*touch)(void* context, const void* address, i64 bytes, bool writes);
};

}  // namespace heddle
