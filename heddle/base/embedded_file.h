// A file of the source tree, as it was when heddle was built. cmake/embed.cmake writes it into the program,
// so that the program needs no source tree.
#pragma once

#include <string_view>

namespace heddle {

struct EmbeddedFile {
  std::string_view path;  // from the root of the tree: "heddle/ir/tensor.h"
  std::string_view text;
};

}  // namespace heddle
