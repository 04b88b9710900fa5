#include "heddle/text/stream_decoder.h"

#include <utility>

#include "heddle/text/unicode/utf8.h"

namespace heddle {

std::string StreamDecoder::push(int32_t id) {
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  held_ += tokenizer_.bytes_of(id);
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Char c = first_char(rest);
    if (c.state == Utf8Char::kIncomplete) break;
    text += c.state == Utf8Char::kValid ? rest.substr(0, c.size) : kReplacement;
    rest.remove_prefix(c.size);
  }
  held_.erase(0, held_.size() - rest.size());
  return text;
}

std::string StreamDecoder::flush() {
  return to_valid_utf8(std::exchange(held_, {}));
}

}  // namespace heddle
