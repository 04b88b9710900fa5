// Tensor maps as the parameters of a kernel. Host and device read this file: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// A tensor in memory as bulk copies see it. The driver writes it and the copies read it (CUtensorMap).
struct alignas(64) TensorMap {
  u8 bytes[128];
};

template <int kCount>
struct TensorMaps {
  TensorMap at[kCount];
};

}  // namespace heddle
