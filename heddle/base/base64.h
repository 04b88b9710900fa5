// Base64 of RFC 4648, with padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle {

std::string to_base64(std::string_view bytes);
// Nothing if `text` is not what to_base64 could have written.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace heddle
