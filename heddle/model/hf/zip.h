// The directory of a zip file whose files are stored as they are. Compressed or encrypted ones are refused.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace heddle {

struct ZipEntry {
  size_t begin = 0, size = 0;  // bytes of its content in the whole file
};

// Files by name. Every one lies inside `bytes`. Checksums are not computed, as that would read all weights twice. Messages
// name the file `path`. Throws Error.
std::map<std::string, ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& path);

bool looks_like_zip(std::span<const std::byte> bytes);

}  // namespace heddle
