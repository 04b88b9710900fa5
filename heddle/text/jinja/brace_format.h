// Python's text.format(…) and text.format_map(…), as Jinja's sandbox runs them.
#pragma once

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

// `format` is a string. If it is safe, what is put in is escaped.
Value brace_format(Budget& budget, const Value& format, Arguments& arguments);
Value brace_format_map(Budget& budget, const Value& format, Arguments& arguments);

}  // namespace heddle::jinja
