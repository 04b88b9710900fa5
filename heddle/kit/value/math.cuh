// Functions of a value in a thread of a GPU (tile/math.cuh).
#pragma once

#include "heddle/kit/value/value.cuh"

namespace heddle::device {
#include "heddle/tile/math.cuh"
}  // namespace heddle::device
