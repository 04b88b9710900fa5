// What device programs include. The path of each is as it stands in #include.
#pragma once

#include <span>

#include "heddle/base/embedded_file.h"

namespace heddle::cuda {

std::span<const EmbeddedFile> device_sources();  // sorted by path

}  // namespace heddle::cuda
