// The methods of texts, numbers, dicts, lists, loops and cyclers. Calling a method that only Python has is an
// Error.
#pragma once

#include <string_view>

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

// True if Python has a method of this name, which then hides a key of a dict.
bool has_method(const Value& value, std::string_view name);

Value call_method(Budget& budget, const Callable& method, Arguments& arguments);

}  // namespace heddle::jinja
