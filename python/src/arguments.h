// The arguments of a call, as Python gave them.
#pragma once

#include "python/src/call.h"

namespace heddle::python {

// The caller's arguments are others than the function has. Python sees heddle.WrongCall, which is a TypeError too.
struct WrongCall : Error {
  explicit WrongCall(const std::string& message) : Error(ErrorCode::kInvalidArgument, message) {}
};

// An answer was not ready in time. Python sees heddle.DeadlineExceeded, which is a TimeoutError too.
struct DeadlineExceeded : Error {
  explicit DeadlineExceeded(const std::string& message) : Error(ErrorCode::kDevice, message) {}
};

// A number, a bool or a name. Throws Error for anything else.
AttributeValue attribute_value(const Argument& argument, PyObject* value);
void set_attributes(const OpEntry& entry, const Given& given, std::byte* args);

// Finds the kinds of a call's tensors, which must all be of one library.
class OneLibrary {
 public:
  explicit OneLibrary(const OpEntry& entry) : entry_(entry) {}
  // Throws Error for what is no tensor, of another library than those before it, or no memory by itself.
  const Kind& kind_of(const TensorArgument& argument, PyObject* tensor);
  const Kind* kind() const { return kind_; }  // the first tensor's; null: there was none

 private:
  const OpEntry& entry_;
  const Kind* kind_ = nullptr;
  const TensorArgument* first_ = nullptr;
  PyObject* first_tensor_ = nullptr;
};

// Throws Error where an output cannot be written.
void require_writable(const OpEntry& entry, const TensorArgument& argument, const Kind& kind,
                      const View& view, PyObject* tensor);

}  // namespace heddle::python
