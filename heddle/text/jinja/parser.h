// Reads the text of a template into a tree.
#pragma once

#include <string_view>

#include "heddle/text/jinja/ast.h"

namespace heddle::jinja {

// Throws an Error "line N: what is wrong" where Jinja has no such syntax (kInvalidArgument) or this subset has
// not (kUnsupported). `source` is valid UTF-8.
Body parse(std::string_view source);

}  // namespace heddle::jinja
