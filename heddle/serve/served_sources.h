// The files that a browser gets: serve/page, as they are in the tree.
#pragma once

#include <span>

#include "heddle/base/embedded_file.h"

namespace heddle {

std::span<const EmbeddedFile> served_sources();

}  // namespace heddle
