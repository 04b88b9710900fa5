// Decodes tokens one at a time. Text is handed out as soon as it is certain, in whole characters; put together it is what
// Tokenizer::decode gives for all tokens at once. Tokens that are bytes by fallback wait for the end of their run.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

class StreamDecoder {
 public:
  // `tokenizer` must outlive this.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that `id` completes; empty while a character lacks bytes.
  std::string push(int32_t id);

  // What is left at the end: U+FFFD where a character stayed incomplete. Ready for another text after it.
  std::string flush();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  Decoder::State state_;
};

}  // namespace heddle
