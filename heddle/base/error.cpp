#include "heddle/base/error.h"

#include "heddle/base/invariant.h"

namespace heddle {

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kIo:
      return "i/o";
    case ErrorCode::kCompile:
      return "compile";
    case ErrorCode::kDevice:
      return "device";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

void throw_error(ErrorCode code, fmt::string_view format, fmt::format_args args) {
  throw Error(code, fmt::vformat(format, args));
}

void check_failed(const char* text, const char* file, int line) {
  fail(ErrorCode::kInternal, "[heddle] broken invariant `{}` at {}:{}; please report it", text, file, line);
}

}  // namespace heddle
