// The parts of the timeline's page, which are the files of heddle/trace/page.
#pragma once

#include <span>

#include "heddle/base/embedded_file.h"

namespace heddle {

std::span<const EmbeddedFile> page_sources();  // sorted by path

}  // namespace heddle
