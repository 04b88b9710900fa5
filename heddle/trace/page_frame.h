// What the pages that heddle writes share: a frame with places for texts, and data for its script.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "heddle/base/json.h"

namespace heddle {

// The frame with the field of that name in each place {{name}}; every place needs one.
std::string fill_frame(std::string_view frame, const std::map<std::string, std::string, std::less<>>& fields);

// As it can stand in a script element, which no text in it ends.
std::string json_in_page(const Json& json);

}  // namespace heddle
