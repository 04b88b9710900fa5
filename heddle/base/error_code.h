// The kinds of errors.
#pragma once

namespace heddle {

enum class ErrorCode {
  kInvalidArgument,  // the caller's values are wrong
  kUnsupported,      // the values make sense, but this build does not support them
  kIo,               // a file is missing, short, malformed or cannot be written
  kCompile,          // a device program did not compile
  kDevice,           // a run failed: hang, fault, abort
  kInternal,         // heddle broke a promise of its own
};
const char* name(ErrorCode code);

}  // namespace heddle
