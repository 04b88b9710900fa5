// Methods of text that ask for the class of its characters, pad it, or replace characters by a table.
#include <algorithm>

#include "heddle/text/jinja/character_class.h"
#include "heddle/text/jinja/format_spec.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/method_tables.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

// True if there are characters and each is of the class.
template <bool (*kIs)(uint32_t)>
Value all_are(Budget& budget, const Value& self, Arguments&) {
  const auto all = code_points(self.as_string());
  budget.spend(Budget::kItem * all.size());
  return Value(!all.empty() && std::ranges::all_of(all, kIs));
}

Value is_ascii(Budget&, const Value& self, Arguments&) {
  return Value(std::ranges::all_of(self.as_string(), [](char c) { return uint8_t(c) < 0x80; }));
}

Value is_printable_text(Budget& budget, const Value& self, Arguments&) {
  budget.spend(Budget::kItem * self.as_string().size());
  return Value(std::ranges::all_of(code_points(self.as_string()), is_printable));
}

Value is_identifier(Budget& budget, const Value& self, Arguments&) {
  const auto all = code_points(self.as_string());
  budget.spend(Budget::kItem * all.size());
  return Value(!all.empty() && begins_identifier(all[0]) && std::ranges::all_of(all, continues_identifier));
}

template <bool kUpper>
Value has_case(Budget& budget, const Value& self, Arguments&) {
  budget.spend(Budget::kItem * self.as_string().size());
  return Value(has_only_case(self.as_string(), kUpper));
}

// Capitals begin words, and only words.
Value is_title(Budget& budget, const Value& self, Arguments&) {
  bool cased = false, inside = false;
  for (uint32_t c : code_points(self.as_string())) {
    budget.spend(Budget::kItem);
    const bool capital = is_uppercase(c) || is_titlecase(c), small = is_lowercase(c);
    if ((capital && inside) || (small && !inside)) return Value(false);
    inside = capital || small;
    cased |= inside;
  }
  return Value(cased);
}

template <std::string (*kConvert)(std::string_view)>
Value convert(Budget& budget, const Value& self, Arguments&) {
  budget.spend(self.as_string().size());
  return Value(kConvert(self.as_string()));
}

template <Sides kSides>
Value justify(Budget& budget, const Value& self, Arguments& arguments) {
  require(arguments.find(0, ""), "the width is missing");
  const int64_t width = checked_width(budget, arguments.integer(0, "", 0));
  const Value* given = arguments.find(1, "");
  std::string fill = given ? string_argument(*given, "the character that fills") : " ";
  require(count_characters(fill) == 1, "'{}' fills a field; one character is expected", fill);
  if (self.is_safe() && given && !given->is_safe()) fill = escape_html(fill);
  const std::string& text = self.as_string();
  require(count_characters(fill) == 1, "'{}' fills a field; one character is expected", fill);
  const int64_t missing = std::max<int64_t>(width - int64_t(count_characters(text)), 0);
  // Python puts the odd one to the left if the width is odd.
  const int64_t left = kSides == Sides::kLeft    ? 0
                       : kSides == Sides::kRight ? missing
                                                 : missing / 2 + (missing & width & 1);
  std::string result;
  for (int64_t i = 0; i < left; ++i) result += fill;
  result += text;
  for (int64_t i = left; i < missing; ++i) result += fill;
  return Value(std::move(result));
}

Value zfill(Budget& budget, const Value& self, Arguments& arguments) {
  require(arguments.find(0, ""), "the width is missing");
  const int64_t width = checked_width(budget, arguments.integer(0, "", 0));
  std::string text = self.as_string();
  const size_t sign = text.starts_with('+') || text.starts_with('-') ? 1 : 0;
  const int64_t missing = width - int64_t(count_characters(text));
  if (missing > 0) text.insert(sign, size_t(missing), '0');
  return Value(std::move(text));
}

Value expand_tabs(Budget& budget, const Value& self, Arguments& arguments) {
  const int64_t size = checked_width(budget, arguments.integer(0, "tabsize", 8));
  std::string result;
  int64_t column = 0;
  for (std::string_view character : characters(self.as_string())) {
    if (character != "\t") {
      result += character;
      column = character == "\n" || character == "\r" ? 0 : column + 1;
    } else if (size > 0) {
      const int64_t spaces = size - column % size;
      budget.spend(uint64_t(spaces));
      result.append(size_t(spaces), ' ');
      column += spaces;
    }
  }
  return Value(std::move(result));
}

// A replacement in a table of translate: a text, the number of a character, or none.
void append_replacement(const Value& with, std::string& out) {
  if (with.is(Kind::kNone)) return;
  if (with.is(Kind::kString)) {
    out += with.as_string();
    return;
  }
  const bool valid = with.is_integer() && with.as_int() >= 0 && with.as_int() <= 0x10FFFF &&
                     (with.as_int() < 0xD800 || with.as_int() > 0xDFFF);
  require(valid, "translate with {}; a text, the number of a character or none is expected", describe(with));
  append_utf8(uint32_t(with.as_int()), out);
}

Value translate(Budget& budget, const Value& self, Arguments& arguments) {
  const Value& table = arguments.at(0, "");
  require(table.is(Kind::kDict), "translate with {}; a dict is expected", describe(table));
  std::string result;
  for (uint32_t c : code_points(self.as_string())) {
    const Value* found = table.as_dict().find(budget, Value(int64_t{c}));
    const size_t before = result.size();
    if (found) {
      append_replacement(*found, result);
    } else {
      append_utf8(c, result);
    }
    budget.spend(result.size() - before);
  }
  return Value(std::move(result));
}

Value number_of(std::string_view character) {
  require(count_characters(character) == 1, "'{}' in a table; one character is expected", character);
  return Value(int64_t{first_char(character).code_point});
}

Value make_table(Budget& budget, const Value&, Arguments& arguments) {
  const Value& from = arguments.at(0, "");
  const Value *to = arguments.find(1, ""), *without = arguments.find(2, "");
  Dict::Items table;
  if (!to) {
    require(from.is(Kind::kDict), "maketrans of {}; a dict or two texts are expected", describe(from));
    for (const auto& [key, value] : from.as_dict().items)
      set_item(budget, table, key.is(Kind::kString) ? number_of(key.as_string()) : key, value);
    return make_dict(std::move(table));
  }
  const auto left = characters(string_argument(from, "the first text")),
             right = characters(string_argument(*to, "the second text"));
  require(left.size() == right.size(), "maketrans of {} and {} characters; as many are expected", left.size(),
          right.size());
  for (size_t i = 0; i < left.size(); ++i) set_item(budget, table, number_of(left[i]), number_of(right[i]));
  if (without) {
    for (std::string_view character : characters(string_argument(*without, "the third text")))
      set_item(budget, table, number_of(character), Value::none());
  }
  return make_dict(std::move(table));
}

}  // namespace

const MethodTable& character_methods() {
  static const MethodTable all = {
      {"casefold", convert<casefold>},
      {"center", justify<Sides::kBoth>},
      {"expandtabs", expand_tabs},
      {"isalnum", all_are<is_alphanumeric>},
      {"isalpha", all_are<is_alphabetic>},
      {"isascii", is_ascii},
      {"isdecimal", all_are<is_decimal>},
      {"isdigit", all_are<is_digit>},
      {"isidentifier", is_identifier},
      {"islower", has_case<false>},
      {"isnumeric", all_are<is_numeric>},
      {"isprintable", is_printable_text},
      {"isspace", all_are<is_space>},
      {"istitle", is_title},
      {"isupper", has_case<true>},
      {"ljust", justify<Sides::kLeft>},
      {"maketrans", make_table},
      {"rjust", justify<Sides::kRight>},
      {"swapcase", convert<swapcase>},
      {"translate", translate},
      {"zfill", zfill},
  };
  return all;
}

}  // namespace heddle::jinja
