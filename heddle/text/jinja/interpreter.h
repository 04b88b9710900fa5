// Renders a parsed template.
#pragma once

#include <string>

#include "heddle/text/jinja/ast.h"
#include "heddle/text/jinja/render_options.h"

namespace heddle::jinja {

// Throws an Error "line N: what is wrong"; the text of raise_exception is such an error too.
std::string render(const Body& body, const Variables& variables, const RenderOptions& options);

}  // namespace heddle::jinja
