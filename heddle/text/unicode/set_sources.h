// The tables of sets of characters: named_sets.txt and stage_sets.txt.
#pragma once

#include <span>

#include "heddle/base/embedded_file.h"

namespace heddle {

// Lines of `KIND NAME,NAME... FIRST-LAST ...` with code points in base 16; a range of one character is that character.
// Ranges rise. A build puts the files into the program.
std::span<const EmbeddedFile> set_sources();

}  // namespace heddle
