// Texts that are safe to stand in HTML: Python's Markup. Whatever joins one is escaped first.
#pragma once

#include <string>
#include <string_view>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

// & < > ' " as entities.
std::string escape_html(std::string_view text);
// A safe text: the value itself if it is one, else its text with entities.
Value escaped(Budget& budget, const Value& value);
// Keeps a result as safe as the text that it was made from.
inline Value safe_like(const Value& origin, const Value& result) {
  return origin.is_safe() ? result.marked_safe() : result;
}
// Without tags and comments, with single spaces, and with entities replaced by their characters.
std::string strip_tags(std::string_view text);

}  // namespace heddle::jinja
