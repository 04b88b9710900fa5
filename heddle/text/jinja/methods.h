// The methods of strings, dicts, lists and `loop`. A name that Python has and this subset has not is an Error
// when it is called.
#pragma once

#include <string_view>

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

// Whether Python finds a method of this name, which then hides a key of a dict.
bool has_method(const Value& value, std::string_view name);

Value call_method(Budget& budget, const Callable& method, Arguments& arguments);

}  // namespace heddle::jinja
