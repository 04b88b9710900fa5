// Recognises what downloads leave in place of a file.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

// Throws Error if `content`, the beginning of the file `path`, is a Git LFS pointer, or a page of a web site.
void refuse_placeholder(const std::string& path, std::string_view content);

}  // namespace heddle
