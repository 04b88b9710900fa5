// Shared by the pages that heddle writes: a frame with places for texts, and data for its script.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "heddle/base/json.h"

namespace heddle {

// Puts the field of that name into each place {{name}} of the frame. Every place needs one.
std::string fill_frame(std::string_view frame, const std::map<std::string, std::string, std::less<>>& fields);

// JSON for a script element: no text in it can end the element.
std::string json_in_page(const Json& json);

}  // namespace heddle
