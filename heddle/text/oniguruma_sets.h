// Sets of characters that Oniguruma names, in two forms: as the inside of a PCRE2 class, and as ranges.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heddle/text/unicode/code_set.h"

namespace heddle {

struct CharSet {
  std::string text;  // the inside of a PCRE2 class
  CodeSet codes;     // its characters
  bool negated = false;

  CodeSet members() const { return negated ? ~codes : codes; }
};

// \s, \S, \d, \D, \h, \H, \w and \W, by their letter; nothing for any other.
std::optional<CharSet> escaped_char_set(char name, bool in_class);

// \p{name}, with the parts that a negation does not change. Nothing if no set has the name.
std::optional<CharSet> property_char_set(std::string_view name, bool in_class);

// [:name:] inside of a class; nothing if no bracket has the name.
std::optional<CodeSet> posix_code_set(std::string_view name);

// \w outside of a class, as the inside of a PCRE2 class.
const std::string& word_class_text();

}  // namespace heddle
