// Patterns of JSON Schema (regular expressions of ECMAScript) as automata: a subset without looking around, backward references, borders of
// words and classes of Unicode. A pattern without ^ and $ may lie anywhere in the text, as JSON Schema has it.
#pragma once

#include <functional>
#include <string_view>

#include "heddle/text/grammar/byte_dfa.h"

namespace heddle {

// Tells how a pattern's characters are spelled.
enum class Spelling : u8 {
  kPlain,       // in UTF-8
  kJsonString,  // as a string of JSON, with its quotes: one spelling for each character
};

// Accepts the texts that match. Throws Error that says what the pattern has and heddle does not do.
ByteDfa dfa_of_pattern(std::string_view pattern, Spelling spelling);

// The spelling of a character in a string of JSON: escaped where it must be.
std::string json_spelling(char32_t c);

}  // namespace heddle
