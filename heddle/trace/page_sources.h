// The parts of the timeline's page, as they were when heddle was built.
#pragma once

#include <span>
#include <string_view>

namespace heddle {

struct PageSource {
  std::string_view path;  // "heddle/trace/page/view.js"
  std::string_view text;
};

// Sorted by path. Generated from heddle/trace/page by cmake/embed.cmake.
std::span<const PageSource> page_sources();

}  // namespace heddle
