// Members of values that are no methods: of numbers, ranges, groups, macros and cyclers.
#pragma once

#include <optional>
#include <string_view>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

std::optional<Value> plain_attribute(const Value& value, std::string_view name);

}  // namespace heddle::jinja
