// The texts that device programs include, as they were when heddle was built: written into the program, so that it
// needs no source tree.
#pragma once

#include <span>
#include <string_view>

namespace heddle::cuda {

struct DeviceSource {
  std::string_view path;  // as it stands in #include: "heddle/ir/tensor.h"
  std::string_view text;
};

// Sorted by path. Generated from the tree by cmake/embed.cmake.
std::span<const DeviceSource> device_sources();

}  // namespace heddle::cuda
