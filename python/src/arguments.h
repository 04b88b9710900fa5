// The arguments of a call, as Python gave them.
#pragma once

#include "python/src/call.h"

namespace heddle::python {

// The caller's arguments are others than the function has. Python sees heddle.WrongCall, which is a TypeError too.
struct WrongCall : Error {
  explicit WrongCall(const std::string& message) : Error(ErrorCode::kInvalidArgument, message) {}
};

// A number, a bool or a name. Throws Error for anything else.
AttributeValue attribute_value(const Argument& argument, PyObject* value);
void set_attributes(const OpEntry& entry, const Given& given, std::byte* args);

}  // namespace heddle::python
