// The tests of templates: `x is name(arguments)`.
#pragma once

#include <string>
#include <string_view>

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

bool is_test(std::string_view name);
std::string test_names();
bool apply_test(Budget& budget, std::string_view name, const Value& value, Arguments& arguments);

}  // namespace heddle::jinja
