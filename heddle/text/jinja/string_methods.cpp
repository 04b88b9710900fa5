// Methods of text that look for a part, cut it or change it.
#include <algorithm>

#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/method_tables.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

// A text that joins `self`: if that is safe, whatever joins it is escaped.
std::string joinable(Budget& budget, const Value& self, const Value& value, std::string_view what) {
  return self.is_safe() ? escaped(budget, value).as_string() : string_argument(value, what);
}

size_t byte_of(std::string_view text, size_t character) {
  size_t at = 0;
  for (; character > 0 && at < text.size(); --character) at += first_char(text.substr(at)).size;
  return at;
}

std::vector<Value> texts(Budget& budget, const std::vector<std::string_view>& parts) {
  std::vector<Value> values;
  for (std::string_view part : parts) {
    budget.spend(Budget::kItem + part.size());
    values.emplace_back(part);
  }
  return values;
}

template <Sides kSides>
Value strip_method(Budget&, const Value& self, Arguments& arguments) {
  const Value* chars = arguments.find(0, "");
  if (!chars || chars->is(Kind::kNone)) return Value(strip(self.as_string(), kSides));
  return Value(strip(self.as_string(), kSides, string_argument(*chars, "what is stripped")));
}

template <Sides kFrom>
Value split_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value* given = arguments.find(0, "sep");
  const int64_t most = arguments.integer(1, "maxsplit", -1);
  std::optional<std::string_view> separator;
  if (given && !given->is(Kind::kNone)) separator = string_argument(*given, "the separator");
  require(!separator || !separator->empty(), "split with an empty separator");
  // A search from the right is quadratic in the worst case.
  if (kFrom == Sides::kRight && separator) budget.spend(self.as_string().size() * separator->size() / 16);
  return make_sequence(texts(budget, split(self.as_string(), separator, most, kFrom)));
}

Value split_lines_method(Budget& budget, const Value& self, Arguments& arguments) {
  const bool keep_ends = arguments.truth(0, "keepends", false);
  return make_sequence(texts(budget, split_lines(self.as_string(), keep_ends)));
}

// The part between the characters that two arguments name, as in text[begin:end].
struct Part {
  std::string_view text = {};
  size_t first = 0;      // characters before it
  bool outside = false;  // it begins beyond the end
};

Part part_of(Budget& budget, std::string_view text, Arguments& arguments, size_t place) {
  const auto bound = [&](size_t at) -> std::optional<int64_t> {
    const Value* given = arguments.find(at, "");
    if (!given || given->is(Kind::kNone)) return std::nullopt;
    return arguments.integer(at, "", 0);
  };
  const auto begin = bound(place), end = bound(place + 1);
  if (!begin && !end) return {.text = text};
  budget.spend(text.size());
  const auto size = int64_t(count_characters(text));
  const auto from_start = [&](int64_t at) { return at < 0 ? std::max<int64_t>(at + size, 0) : at; };
  const int64_t first = from_start(begin.value_or(0)), last = std::min(from_start(end.value_or(size)), size);
  if (first > last) return {.first = 0, .outside = true};
  const size_t from = byte_of(text, size_t(first)), to = byte_of(text, size_t(last));
  return {.text = text.substr(from, to - from), .first = size_t(first)};
}

template <Sides kSide>
bool has_affix(std::string_view text, const Value& affix) {
  const std::string_view part = string_argument(affix, "the beginning or end");
  return kSide == Sides::kLeft ? text.starts_with(part) : text.ends_with(part);
}

template <Sides kSide>
Value affix_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value& affix = arguments.at(0, "");
  const Part part = part_of(budget, self.as_string(), arguments, 1);
  const bool tuple = affix.is(Kind::kSequence) && affix.as_sequence().flavor == Sequence::kTuple;
  const auto fits = [&](const Value& one) { return has_affix<kSide>(part.text, one) && !part.outside; };
  return Value(tuple ? std::ranges::any_of(affix.as_sequence().items, fits) : fits(affix));
}

template <Sides kSide>
Value remove_affix_method(Budget&, const Value& self, Arguments& arguments) {
  const Value& affix = arguments.at(0, "");
  std::string_view text = self.as_string();
  if (!has_affix<kSide>(text, affix)) return Value(text);
  const size_t size = affix.as_string().size();
  return Value(kSide == Sides::kLeft ? text.substr(size) : text.substr(0, text.size() - size));
}

template <std::string (*kConvert)(std::string_view)>
Value convert_method(Budget& budget, const Value& self, Arguments&) {
  budget.spend(self.as_string().size());
  return Value(kConvert(self.as_string()));
}

Value replace_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value &old = arguments.at(0, ""), &with = arguments.at(1, "");
  const std::string replacing = joinable(budget, self, with, "the replacement");
  const Replacement replacement = {.old = string_argument(old, "what is replaced"),
                                   .with = replacing,
                                   .most = arguments.integer(2, "", -1)};
  return Value(replace(budget, self.as_string(), replacement));
}

Value join_method(Budget& budget, const Value& self, Arguments& arguments) {
  std::string joined;
  bool first = true;
  for (const Value& item : items_of(budget, arguments.at(0, ""))) {
    const std::string text = joinable(budget, self, item, "what is joined");
    budget.spend(text.size() + self.as_string().size());
    if (!first) joined += self.as_string();
    joined += text;
    first = false;
  }
  return Value(std::move(joined));
}

size_t find_from(Sides from, std::string_view text, std::string_view part) {
  return from == Sides::kLeft ? find_text(text, part) : text.rfind(part);
}

template <Sides kFrom, bool kMustBeThere>
Value find_method(Budget& budget, const Value& self, Arguments& arguments) {
  const std::string_view wanted = string_argument(arguments.at(0, ""), "what is looked for");
  const Part part = part_of(budget, self.as_string(), arguments, 1);
  budget.spend(kFrom == Sides::kLeft ? part.text.size() : part.text.size() * (wanted.size() / 16 + 1));
  const size_t at = part.outside ? std::string_view::npos : find_from(kFrom, part.text, wanted);
  require(!kMustBeThere || at != std::string_view::npos, "the text that 'index' looks for is not there");
  if (at == std::string_view::npos) return Value(int64_t{-1});
  return Value(int64_t(part.first + count_characters(part.text.substr(0, at))));
}

Value count_method(Budget& budget, const Value& self, Arguments& arguments) {
  const std::string_view wanted = string_argument(arguments.at(0, ""), "what is counted");
  const Part part = part_of(budget, self.as_string(), arguments, 1);
  budget.spend(part.text.size());
  if (part.outside) return Value(int64_t{0});
  if (wanted.empty()) return Value(int64_t(count_characters(part.text)) + 1);
  return Value(int64_t(split(part.text, wanted, -1).size()) - 1);
}

template <Sides kFrom>
Value partition_method(Budget& budget, const Value& self, Arguments& arguments) {
  const std::string_view text = self.as_string(),
                         separator = string_argument(arguments.at(0, ""), "the separator");
  require(!separator.empty(), "partition with an empty separator");
  budget.spend(text.size() * (separator.size() / 16 + 1));
  const size_t at = find_from(kFrom, text, separator);
  std::vector<std::string_view> parts = {text.substr(0, at), separator, {}};
  if (at != std::string_view::npos) {
    parts[2] = text.substr(at + separator.size());
  } else {
    parts = kFrom == Sides::kLeft ? std::vector<std::string_view>{text, "", ""}
                                  : std::vector<std::string_view>{"", "", text};
  }
  return make_sequence(texts(budget, parts), Sequence::kTuple);
}

}  // namespace

const std::string& string_argument(const Value& value, std::string_view what) {
  require(value.is(Kind::kString), "{} is {}; a string is expected", what, describe(value));
  return value.as_string();
}

const MethodTable& string_methods() {
  static const MethodTable all = {
      {"capitalize", convert_method<capitalize>},
      {"count", count_method},
      {"endswith", affix_method<Sides::kRight>},
      {"find", find_method<Sides::kLeft, false>},
      {"index", find_method<Sides::kLeft, true>},
      {"join", join_method},
      {"lower", convert_method<lower>},
      {"lstrip", strip_method<Sides::kLeft>},
      {"partition", partition_method<Sides::kLeft>},
      {"removeprefix", remove_affix_method<Sides::kLeft>},
      {"removesuffix", remove_affix_method<Sides::kRight>},
      {"replace", replace_method},
      {"rfind", find_method<Sides::kRight, false>},
      {"rindex", find_method<Sides::kRight, true>},
      {"rpartition", partition_method<Sides::kRight>},
      {"rsplit", split_method<Sides::kRight>},
      {"rstrip", strip_method<Sides::kRight>},
      {"split", split_method<Sides::kLeft>},
      {"splitlines", split_lines_method},
      {"startswith", affix_method<Sides::kLeft>},
      {"strip", strip_method<Sides::kBoth>},
      {"title", convert_method<title>},
      {"upper", convert_method<upper>},
  };
  return all;
}

}  // namespace heddle::jinja
