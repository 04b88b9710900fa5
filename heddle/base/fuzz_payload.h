// Shared by fuzzers of files with a header. They skip the header of an input and write their own, so that
// magic and checksum always match.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "heddle/base/error.h"

namespace heddle {

// Calls run() with the bytes after the header. An Error counts as a refusal, unless its code says that heddle
// is at fault.
template <class Run>
int fuzz_payload(const uint8_t* data, size_t size, size_t header_bytes, Run run) {
  std::string_view file(reinterpret_cast<const char*>(data), size);
  file.remove_prefix(std::min(size, header_bytes));
  try {
    run(file);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
  return 0;
}

}  // namespace heddle
