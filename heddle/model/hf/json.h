// Strict reading of JSON from files that strangers made: bounded depth, and no name twice in an object, since
// readers disagree on which of the two values counts. Only .cpp files include this.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace heddle {

// Throws Error(kIo) that names `where`.
nlohmann::json parse_json(std::string_view text, const std::string& where);

// The same of a file.
nlohmann::json load_json(const std::string& path);

// A value for a message: one line of printable ASCII, cut where it is long. A string comes in quotes.
std::string brief(const nlohmann::json& value);

}  // namespace heddle
