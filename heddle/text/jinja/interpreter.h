// Renders a parsed template.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/jinja/ast.h"

namespace heddle::jinja {

struct RenderOptions {
  std::optional<std::tm> now;  // for strftime_now; else the clock's local time
  uint64_t budget = uint64_t{1} << 28;
};

using Variables = std::vector<std::pair<std::string, Value>>;

// Throws an Error "line N: what is wrong"; the text of raise_exception is such an error too.
std::string render(const Body& body, const Variables& variables, const RenderOptions& options);

}  // namespace heddle::jinja
