// Writes manual pages and shell completion from the description of the program.
#pragma once

#include <string>

#include "apps/heddle/support/description.h"

namespace heddle {

// Each returns the text of a file.
std::string man_page(const CommandDescription& program, const CommandDescription& command);
std::string bash_completion(const CommandDescription& program);
std::string zsh_completion(const CommandDescription& program);
std::string fish_completion(const CommandDescription& program);

}  // namespace heddle
