// Values of Python as JSON, which settings are read from.
#pragma once

#include "heddle/base/json.h"
#include "python/src/object.h"

namespace heddle::python {

// None, bools, numbers, texts, lists, dicts, and what has `tolist`, such as an array. Throws Error that says `where` for
// others.
Json json_value(PyObject* object, const std::string& where);

}  // namespace heddle::python
