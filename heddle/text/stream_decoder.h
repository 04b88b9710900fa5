// Decodes tokens one at a time. It returns text as soon as it is certain, in whole characters; the pieces
// together equal Tokenizer::decode of all tokens at once. Tokens that are bytes by fallback wait for the end
// of their run.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // Takes the tokens before the text, whose own text was seen. The text of all tokens is theirs and then the pieces:
  // a space that a decoder takes from the beginning of a text is not at the beginning here.
  void begin_after(std::span<const int32_t> ids);
  // Gives the text of a special token too, though others are skipped.
  void show(int32_t id) { shown_.insert(id); }

  // The text that `id` completes; empty while a character lacks bytes.
  std::string push(int32_t id);

  // Returns the rest at the end: U+FFFD if a character stayed incomplete. After that, the decoder is ready
  // for another text.
  std::string flush();

 private:
  std::string unseen(const std::string& text);

  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::set<int32_t> shown_;
  Decoder::State state_;
  std::string seen_;  // text of the tokens before that comes again, because the state holds it
};

}  // namespace heddle
