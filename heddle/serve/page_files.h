// The files that a browser gets: serve/page, as they are in the tree.
#pragma once

#include <span>

#include "heddle/base/embedded_file.h"

namespace heddle {

std::span<const EmbeddedFile> page_files();

}  // namespace heddle
