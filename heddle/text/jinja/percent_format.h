// Python's `format % values`.
#pragma once

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

// `format` is a string. A tuple has the values in their order, a dict has them by name, and any other value is
// the only one. If `format` is safe, what is put in is escaped.
Value percent_format(Budget& budget, const Value& format, const Value& values);

}  // namespace heddle::jinja
