// The headers that a tile body of Python's is compiled with.
#pragma once

#include <span>

#include "heddle/base/embedded_file.h"

namespace heddle::python {

std::span<const EmbeddedFile> own_headers();

}  // namespace heddle::python
