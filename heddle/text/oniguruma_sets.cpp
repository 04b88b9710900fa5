#include "heddle/text/oniguruma_sets.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "heddle/text/unicode_additions.h"

namespace heddle {
namespace {

constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kWordAdditions[] = {"L", "M", "Nd", "Pc"};
// U+1171E, which PCRE2 has in it, is in Mc in the version of Oniguruma. A class cannot take it out.
constexpr std::string_view kOneLess = "Mn";

// Ranges that Unicode added to a category, as the inside of a class.
std::string additions_to(std::string_view category) {
  std::string ranges;
  uint32_t open_end = 0;  // the last code point of the range being written; 0: none
  auto close = [&] {
    if (open_end) ranges += fmt::format("-\\x{{{:x}}}", open_end);
  };
  for (const CategoryRange& range : kUnicodeAdditions) {
    if (!std::string_view(range.category).starts_with(category)) continue;
    if (!open_end || range.first != open_end + 1) {
      close();
      ranges += fmt::format("\\x{{{:x}}}", range.first);
    }
    open_end = range.last;
  }
  close();
  return ranges;
}

// General categories by their names (L, Lu).
using Categories = std::map<std::string, CharSet, std::less<>>;
const Categories& categories() {
  static const Categories made = [] {
    Categories sets;
    for (const auto names : {letter_names(), category_names()}) {
      for (const NamedRanges& row : names) {
        std::string name(row.name);
        name[0] = char(std::toupper(uint8_t(name[0])));
        CodeSet& whole = sets[name.substr(0, 1)].codes;
        const CodeSet& part = sets[name].codes = CodeSet({row.ranges.begin(), row.ranges.end()});
        whole = whole | part;
      }
    }
    for (auto& [name, set] : sets) {
      set.text =
          name == kOneLess ? set.codes.class_text() : fmt::format("\\p{{{}}}{}", name, additions_to(name));
    }
    return sets;
  }();
  return made;
}

// The general category by this name, as in \\p{Lu}, \\p{lu} and \\p{Letter}; null if there is none.
const CharSet* find_category(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kLong[] = {{"letter", "L"}, {"mark", "M"},
                                                                     {"number", "N"}, {"punctuation", "P"},
                                                                     {"symbol", "S"}, {"separator", "Z"}};
  std::string wanted(name);
  std::ranges::transform(wanted, wanted.begin(), [](char c) { return char(std::tolower(uint8_t(c))); });
  const auto* longer =
      std::ranges::find(kLong, wanted, &std::pair<std::string_view, std::string_view>::first);
  if (longer != std::end(kLong)) wanted = longer->second;
  if (!wanted.empty()) wanted[0] = char(std::toupper(uint8_t(wanted[0])));
  const auto found = categories().find(wanted);
  return found == categories().end() ? nullptr : &found->second;
}

CodeSet category_codes(const char* name) {
  return categories().at(name).codes;
}

CharSet make_word_set(bool in_class) {
  CharSet set{std::string(kWord), *named_code_set("Alphabetic") | category_codes("M") | category_codes("Nd") |
                                      category_codes("Pc")};
  for (std::string_view category : kWordAdditions) set.text += additions_to(category);
  if (!in_class) {
    set.text += "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
    set.codes = set.codes | CodeSet({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
  }
  return set;
}

// Outside a class Oniguruma counts the superscripts and fractions of Latin-1 as parts of a word; inside a
// class it does not.
const CharSet& word_set(bool in_class) {
  static const CharSet outside = make_word_set(false), inside = make_word_set(true);
  return in_class ? inside : outside;
}

// Sets of Oniguruma that others make, by their names in lower case.
std::optional<CodeSet> composed_set(std::string_view name) {
  const auto named = [](std::string_view other) { return *named_code_set(other); };
  const auto graph = [&] { return ~(named("whitespace") | named("cc") | named("cn")); };
  if (name == "digit") return category_codes("Nd");
  if (name == "alnum") return named("alpha") | category_codes("Nd");
  if (name == "graph") return graph();
  if (name == "print") return graph() | category_codes("Zs");
  if (name == "posixpunct") return category_codes("P") | category_codes("S");
  return std::nullopt;
}

}  // namespace

std::optional<CharSet> escaped_char_set(char name, bool in_class) {
  const bool negated = std::isupper(uint8_t(name));
  CharSet set;
  switch (name) {
    case 's':
      return CharSet{"\\p{White_Space}", *named_code_set("White_Space")};
    case 'S':
      return CharSet{"\\P{White_Space}", ~*named_code_set("White_Space")};
    case 'd':
    case 'D':
      set = categories().at("Nd");
      break;
    case 'h':
    case 'H':
      set = {"0-9A-Fa-f", CodeSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}})};
      break;
    case 'w':
    case 'W':
      set = word_set(in_class);
      break;
    default:
      return std::nullopt;
  }
  set.negated = negated;
  return set;
}

std::optional<CharSet> property_char_set(std::string_view name, bool in_class) {
  if (const CharSet* category = find_category(name)) return *category;
  const std::string plain = plain_name(name);
  if (plain == "word") return word_set(in_class);
  auto named = named_code_set(name);
  if (!named) named = composed_set(plain);
  if (!named) return std::nullopt;
  std::string text = named->class_text();
  return CharSet{std::move(text), std::move(*named)};
}

std::optional<CodeSet> posix_code_set(std::string_view name) {
  constexpr std::string_view kNames[] = {"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph",
                                         "lower", "print", "punct", "space", "upper", "word",  "xdigit"};
  if (std::ranges::find(kNames, name) == std::end(kNames)) return std::nullopt;
  if (name == "word") return word_set(true).codes;
  if (name == "punct") return composed_set("posixpunct");  // other than \p{Punct}, the bracket has symbols
  const auto named = named_code_set(name);
  return named ? named : composed_set(name);
}

const std::string& word_class_text() {
  return word_set(false).text;
}

}  // namespace heddle
