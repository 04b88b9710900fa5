// Functions of templates: those of Jinja (range, dict, namespace, cycler, joiner), and those that transformers adds
// (raise_exception, strftime_now).
#pragma once

#include <string_view>

#include "heddle/text/jinja/arguments.h"
#include "heddle/text/jinja/render_options.h"

namespace heddle::jinja {

bool is_function(std::string_view name);
Value call_function(Budget& budget, std::string_view name, Arguments& arguments,
                    const RenderOptions& options);

}  // namespace heddle::jinja
