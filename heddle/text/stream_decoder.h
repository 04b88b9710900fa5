// Decodes tokens one at a time. It returns text as soon as it is certain, in whole characters; the pieces
// together equal Tokenizer::decode of all tokens at once. Tokens that are bytes by fallback wait for the end
// of their run.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that `id` completes; empty while a character lacks bytes.
  std::string push(int32_t id);

  // Returns the rest at the end: U+FFFD if a character stayed incomplete. After that, the decoder is ready
  // for another text.
  std::string flush();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  Decoder::State state_;
};

}  // namespace heddle
