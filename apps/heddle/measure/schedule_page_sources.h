// The frame of the schedules' page: schedule_page.html.
#pragma once

#include <span>

#include "heddle/base/embedded_file.h"

namespace heddle {

std::span<const EmbeddedFile> schedule_page_sources();

}  // namespace heddle
