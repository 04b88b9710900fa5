// Writes text to stdout. A full disk or a closed pipe is an error.
#pragma once

#include <string_view>

namespace heddle {

// Both throw Error(kIo) when stdout cannot be written.
void print(std::string_view text);
void flush_output();

}  // namespace heddle
