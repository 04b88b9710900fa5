// Shared by fuzzers. Those of files with a header skip the header of an input and write their own, so that magic
// and checksum always match.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "heddle/base/error.h"

namespace heddle {

// Ends the process where a property of what was read does not hold, whatever the caller catches.
inline void must(bool condition) {
  if (!condition) std::abort();
}

// Calls run() with the bytes after the header. An Error that says where it is ("[file] ...") counts as a refusal,
// unless its code says that heddle is at fault.
template <class Run>
int fuzz_payload(const uint8_t* data, size_t size, size_t header_bytes, Run run) {
  std::string_view file(reinterpret_cast<const char*>(data), size);
  file.remove_prefix(std::min(size, header_bytes));
  try {
    run(file);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    must(std::string_view(error.what()).starts_with('['));
  }
  return 0;
}

}  // namespace heddle
