// heddle's only exception. The form of a message is "[where] what is wrong: the values; what would be right".
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/core.h>

#include "heddle/base/error_code.h"

namespace heddle {

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

[[noreturn]] void throw_error(ErrorCode code, fmt::string_view format, fmt::format_args args);

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw_error(code, format, fmt::make_format_args(args...));
}

// Throws when `ok` is false; for arguments that a caller can get wrong.
template <class... Args>
void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw_error(ErrorCode::kInvalidArgument, format, fmt::make_format_args(args...));
}

}  // namespace heddle
