// Checks for broken invariants of heddle itself. An error that a caller can trigger is an Error instead
// (base/error.h).
#pragma once

namespace heddle {

[[noreturn]] void check_failed(const char* text, const char* file, int line);

}  // namespace heddle

#define HEDDLE_CHECK(condition)                                               \
  do {                                                                        \
    if (!(condition)) ::heddle::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
