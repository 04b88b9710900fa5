// Sets of characters, as ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/unicode/character_sets.h"

namespace heddle {

class CodeSet {
 public:
  CodeSet() = default;
  // In any order; they may overlap.
  explicit CodeSet(std::vector<CodeRange> ranges);

  const std::vector<CodeRange>& ranges() const { return ranges_; }  // rising, with gaps between them
  CodeSet operator|(const CodeSet& other) const;
  CodeSet operator&(const CodeSet& other) const { return ~(~*this | ~other); }
  CodeSet operator~() const;  // without surrogates
  // The inside of a PCRE2 class.
  std::string class_text() const;

 private:
  void join(const std::vector<CodeRange>& ranges);

  std::vector<CodeRange> ranges_;
};

// A property of characters that Oniguruma knows by this name, in either case and with spaces, - and _ left out;
// nothing if it is not in the tables here: scripts, blocks (In_Cyrillic), and the properties of properties.cpp.
std::optional<CodeSet> named_code_set(std::string_view name);
// The name in lower case, without spaces, - and _.
std::string plain_name(std::string_view name);

struct NamedRanges {
  std::string_view name;  // in lower case, without spaces, - and _
  std::span<const CodeRange> ranges;
};
// Sets of named_sets.txt, which scripts/goldens/make_unicode_properties.py wrote.
std::span<const NamedRanges> script_names();
std::span<const NamedRanges> property_names();
std::span<const NamedRanges> block_names();  // without "in"
// The general categories of letters (Lu, Ll, Lt, Lm, Lo), and those of all else but Cc, Cf, Cn and Co.
std::span<const NamedRanges> letter_names();
std::span<const NamedRanges> category_names();

}  // namespace heddle
