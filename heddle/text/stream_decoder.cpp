#include "heddle/text/stream_decoder.h"

namespace heddle {

std::string StreamDecoder::push(int32_t id) {
  if (skip_special_ && tokenizer_.is_skipped(id)) return {};
  return tokenizer_.decode_next(id, state_);
}

std::string StreamDecoder::flush() {
  return tokenizer_.decode_end(state_);
}

}  // namespace heddle
