// JSON into values and back, as Python's json reads and writes it.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

// Objects keep their order, and whole numbers their digits. Throws when values are nested too deeply.
Value from_json(const Json& json);

// The filter tojson of transformers, which escapes no HTML.
Value to_json(Budget& budget, const Value& value, Arguments& arguments);

}  // namespace heddle::jinja
