// The `added_tokens` of tokenizer.json: strings that are found in the text before any other stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // decoding can leave it out
  bool single_word = false;  // does not match next to a letter, digit or mark
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = true;    // matched after the others
  bool is_text = false;      // found in a text, it is a part of it
};

// Finds the tokens of one set in a text: the leftmost match, and the longest if several begin there.
class TokenMatcher {
 public:
  // Contents are neither empty nor equal.
  explicit TokenMatcher(std::vector<AddedToken> tokens);

  using OnText = std::function<void(std::string_view)>;
  using OnToken = std::function<void(int32_t)>;
  // Calls, in order, `on_text` for text between tokens and `on_token` for tokens.
  void split(std::string_view text, const OnText& on_text, const OnToken& on_token) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  bool begins_[256] = {};           // true if a token begins with this byte
};

}  // namespace heddle
