// Cuts the text of a template into tokens, with the white space control that transformers sets: trim_blocks
// and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::jinja {

struct Token {
  enum Kind {
    kData,
    kBlockBegin,
    kBlockEnd,
    kOutputBegin,
    kOutputEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind = kEnd;
  std::string text;  // a string's value
  int line = 1;
};

// Throws an Error whose message says what is wrong and where.
std::vector<Token> tokenize(std::string_view source);

}  // namespace heddle::jinja
