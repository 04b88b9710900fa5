#include "heddle/base/placeholder.h"

#include <algorithm>
#include <cctype>

#include "heddle/base/error.h"

namespace heddle {

void refuse_placeholder(const std::string& path, std::string_view content) {
  const auto begins = [&](std::string_view text) {
    return content.size() >= text.size() &&
           std::equal(text.begin(), text.end(), content.begin(),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  };
  if (begins("version https://git-lfs"))
    fail(ErrorCode::kIo,
         "[{}] is a pointer of Git LFS, not the file itself; run `git lfs pull` in its folder", path);
  if (begins("<!doctype html") || begins("<html"))
    fail(ErrorCode::kIo,
         "[{}] is a page of a web site, not the file itself; download it again, with access to the model if "
         "it "
         "needs that",
         path);
}

}  // namespace heddle
