// The filters of templates: `x | name(arguments)`.
#pragma once

#include <string>
#include <string_view>

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

bool is_filter(std::string_view name);
std::string filter_names();
Value apply_filter(Budget& budget, std::string_view name, const Value& value, Arguments& arguments);

}  // namespace heddle::jinja
