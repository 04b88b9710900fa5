// Writes text to stdout. A full disk or a closed pipe is an error.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace heddle {

// All throw Error(kIo) when stdout cannot be written.
void print(std::string_view text);
template <class First, class... Rest>
void print(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  print(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
}
void flush_output();

}  // namespace heddle
