// An op's arguments, either as bytes or as their struct.
#pragma once

#include <cstddef>

#include "heddle/ir/tensor.h"

namespace heddle {

template <class Args>
const Args& as(const std::byte* args) {
  return *reinterpret_cast<const Args*>(args);
}
template <class Args>
Args& as(std::byte* args) {
  return *reinterpret_cast<Args*>(args);
}

}  // namespace heddle
