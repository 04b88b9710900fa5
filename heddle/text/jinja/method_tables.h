// Methods by the type of their object; methods.h has all of them by name.
#pragma once

#include <map>
#include <string_view>

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

using Method = Value (*)(Budget& budget, const Value& self, Arguments& arguments);
using MethodTable = std::map<std::string_view, Method>;

const MethodTable& string_methods();     // they search and change texts
const MethodTable& character_methods();  // they class, pad and map characters
const MethodTable& dict_methods();
const MethodTable& sequence_methods();  // tuples and ranges have them too
const MethodTable& list_methods();      // tuples have none of them
const MethodTable& loop_methods();
const MethodTable& cycler_methods();
const MethodTable& integer_methods();
const MethodTable& float_methods();

// A string that a method was given; `what` names it in the error.
const std::string& string_argument(const Value& value, std::string_view what);

}  // namespace heddle::jinja
