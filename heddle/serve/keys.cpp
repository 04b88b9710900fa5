#include "heddle/serve/keys.h"

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/types.h"

namespace heddle {

Keys Keys::load(const std::string& file) {
  Keys made;
  const std::string text = read_file(file);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string key = text.substr(at, end - at);
    key.erase(key.find_last_not_of(" \t\r") + 1);
    if (!key.empty() && key[0] != '#') made.keys_.push_back(std::move(key));
    at = end + 1;
  }
  if (made.keys_.empty()) fail(ErrorCode::kIo, "[{}] it has no key; write one a line", file);
  return made;
}

bool Keys::has(std::string_view given) const {
  if (keys_.empty()) return true;
  u32 right = 0;
  for (const std::string& key : keys_) {
    u32 differs = u32(key.size() ^ given.size());
    for (size_t i = 0; i < given.size(); ++i) differs |= u32(u8(given[i]) ^ u8(key[i % key.size()]));
    right |= u32(differs == 0);
  }
  return right != 0;
}

}  // namespace heddle
