// What tells contents apart: against accidents and mistakes, not against malice.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heddle {

// 128 bits of all parts and where each ends, as 32 hexadecimal digits.
std::string digest_of(std::span<const std::string_view> parts);

}  // namespace heddle
