// Names that a person may have meant, for messages about a name that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// The known names that are most like `name`, at most three. Like means a few letters apart (left out, added,
// changed or exchanged), or one begins with the other. Case, and - or _, do not count.
std::vector<std::string> near_names(std::string_view name, std::span<const std::string> known);

// "; did you mean rms_norm?", or "" where no known name is like it.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

// "; did you mean rms_norm?", or where none is like it "; there are add, rms_norm, softmax".
std::string meant_or_all(std::string_view name, std::span<const std::string> known);

}  // namespace heddle
