// The one exception of heddle. Message form: "[where] what is wrong: the values; what would be right".
// Thrown for misuse while something is built or loaded; a worker thread stores it for the next wait.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace heddle {

enum class ErrorCode {
  kInvalidArgument,  // the caller's values are wrong
  kUnsupported,      // the values make sense, this build cannot do them
  kIo,               // a file is missing, short, malformed or cannot be written
  kCompile,          // a device program did not compile
  kDevice,           // a run failed: hang, fault, abort
  kInternal,         // a promise of heddle's own is broken
};

const char* name(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Throws when `ok` is false; for arguments that a caller can get wrong.
template <class... Args>
void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* text, const char* file, int line);

}  // namespace heddle

// A broken invariant of heddle itself. What a caller can trigger is an Error instead.
#define HEDDLE_CHECK(condition)                                               \
  do {                                                                        \
    if (!(condition)) ::heddle::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
