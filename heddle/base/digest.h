// Digests that tell contents apart. They protect against accidents and mistakes, not against malice.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heddle {

// Digests all parts, and where each ends, into 128 bits: 32 hexadecimal digits.
std::string digest_of(std::span<const std::string_view> parts);

// Digests long memory, which up to `threads` threads read (0: one for each allowed core). The digits differ from those above.
std::string digest_of_memory(std::span<const std::string_view> parts, int threads);

}  // namespace heddle
