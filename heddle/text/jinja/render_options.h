// The input of rendering.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

struct RenderOptions {
  std::optional<std::tm> now;  // for strftime_now; else the clock's local time
  uint64_t budget = uint64_t{1} << 28;
};

using Variables = std::vector<std::pair<std::string, Value>>;

}  // namespace heddle::jinja
