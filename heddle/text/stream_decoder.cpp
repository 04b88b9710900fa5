#include "heddle/text/stream_decoder.h"

#include <algorithm>

#include "heddle/text/unicode/utf8.h"

namespace heddle {

void StreamDecoder::begin_after(std::span<const int32_t> ids) {
  for (const int32_t id : ids) push(id);
  Decoder::State state = state_;
  seen_ = tokenizer_.decode_end(state);
}

// The rest of `text` after the characters that it has in common with the text that was seen.
std::string StreamDecoder::unseen(const std::string& text) {
  size_t same = 0;
  while (same < std::min(seen_.size(), text.size())) {
    const size_t size = first_char(std::string_view(seen_).substr(same)).size;
    if (text.compare(same, size, seen_, same, size) != 0) {
      seen_.clear();
      return text.substr(same);
    }
    same += size;
  }
  seen_.erase(0, same);
  return text.substr(same);
}

std::string StreamDecoder::push(int32_t id) {
  if (skip_special_ && tokenizer_.is_skipped(id) && !shown_.contains(id)) return {};
  return unseen(tokenizer_.decode_next(id, state_));
}

std::string StreamDecoder::flush() {
  std::string rest = unseen(tokenizer_.decode_end(state_));
  seen_.clear();
  return rest;
}

}  // namespace heddle
