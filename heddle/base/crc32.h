// The checksum of zip and gzip files (RFC 1952, section 8). It finds damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle {

// About 2 GB a second.
uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace heddle
