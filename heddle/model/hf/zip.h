// The directory of a zip file whose files are stored as they are. Compressed or encrypted ones are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace heddle {

struct ZipEntry {
  size_t begin = 0, size = 0;  // bytes of its content in the whole file
  uint32_t checksum = 0;       // CRC-32 of its content
};

// Files by name. Every one lies inside `bytes`. Checksums are for the caller to compare, when it reads a file. Messages name
// the file `path`. Throws Error.
std::map<std::string, ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& path);

bool looks_like_zip(std::span<const std::byte> bytes);

}  // namespace heddle
