// Reads the text of a template into a tree.
#pragma once

#include <string_view>

#include "heddle/text/jinja/ast.h"

namespace heddle::jinja {

// Throws an Error "line N: what is wrong" when the syntax is not Jinja's (kInvalidArgument) or not in this
// subset (kUnsupported). `source` is valid UTF-8.
Body parse(std::string_view source);

}  // namespace heddle::jinja
