#include "heddle/text/jinja/methods.h"

#include <algorithm>
#include <map>
#include <span>

#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

using Method = Value (*)(Budget&, const Value& self, Arguments&);
using Methods = std::map<std::string_view, Method>;

// Methods of Python that this subset lacks.
constexpr std::string_view kOtherStringMethods[] = {
    "casefold", "center",    "encode",  "expandtabs",   "format",  "format_map", "isalnum",     "isalpha",
    "isascii",  "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
    "istitle",  "isupper",   "ljust",   "maketrans",    "rjust",   "swapcase",   "translate",   "zfill"};
constexpr std::string_view kOtherListMethods[] = {"append", "clear",  "copy",    "extend", "insert",
                                                  "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kOtherDictMethods[] = {"clear",   "copy",       "fromkeys", "pop",
                                                  "popitem", "setdefault", "update"};
constexpr std::string_view kNumberMethods[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};

const std::string& string_argument(const Value& value, std::string_view what) {
  require(value.is(Kind::kString), "{} is {}; a string is expected", what, describe(value));
  return value.as_string();
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
  const Value* chars = arguments.find(0, "chars");
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

template <Sides kSide>
bool has_affix(std::string_view text, const Value& affix) {
  const std::string_view part = string_argument(affix, "the beginning or end");
  return kSide == Sides::kLeft ? text.starts_with(part) : text.ends_with(part);
}

template <Sides kSide>
Value affix_method(Budget&, const Value& self, Arguments& arguments) {
  const Value& affix = arguments.at(0, "prefix");
  const bool tuple = affix.is(Kind::kSequence) && affix.as_sequence().flavor == Sequence::kTuple;
  if (!tuple) return Value(has_affix<kSide>(self.as_string(), affix));
  return Value(std::ranges::any_of(
      affix.as_sequence().items, [&](const Value& one) { return has_affix<kSide>(self.as_string(), one); }));
}

template <Sides kSide>
Value remove_affix_method(Budget&, const Value& self, Arguments& arguments) {
  const Value& affix = arguments.at(0, "prefix");
  std::string_view text = self.as_string();
  if (!has_affix<kSide>(text, affix)) return self;
  const size_t size = affix.as_string().size();
  return Value(kSide == Sides::kLeft ? text.substr(size) : text.substr(0, text.size() - size));
}

template <std::string (*kConvert)(std::string_view)>
Value convert_method(Budget& budget, const Value& self, Arguments&) {
  budget.spend(self.as_string().size());
  return Value(kConvert(self.as_string()));
}

Value replace_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value &old = arguments.at(0, "old"), &with = arguments.at(1, "new");
  const Replacement replacement = {.old = string_argument(old, "what is replaced"),
                                   .with = string_argument(with, "the replacement"),
                                   .most = arguments.integer(2, "count", -1)};
  return Value(replace(budget, self.as_string(), replacement));
}

Value join_method(Budget& budget, const Value& self, Arguments& arguments) {
  std::string joined;
  bool first = true;
  for (const Value& item : items_of(budget, arguments.at(0, "iterable"))) {
    budget.spend(string_argument(item, "what is joined").size() + self.as_string().size());
    if (!first) joined += self.as_string();
    joined += item.as_string();
    first = false;
  }
  return Value(std::move(joined));
}

size_t find_from(Sides from, std::string_view text, std::string_view part) {
  return from == Sides::kLeft ? find_text(text, part) : text.rfind(part);
}

template <Sides kFrom, bool kMustBeThere>
Value find_method(Budget& budget, const Value& self, Arguments& arguments) {
  const std::string_view text = self.as_string(),
                         part = string_argument(arguments.at(0, "sub"), "what is looked for");
  budget.spend(kFrom == Sides::kLeft ? text.size() : text.size() * (part.size() / 16 + 1));
  const size_t at = find_from(kFrom, text, part);
  require(!kMustBeThere || at != std::string_view::npos, "the text that 'index' looks for is not there");
  return Value(at == std::string_view::npos ? int64_t{-1} : int64_t(count_characters(text.substr(0, at))));
}

Value count_method(Budget& budget, const Value& self, Arguments& arguments) {
  const std::string_view text = self.as_string(),
                         part = string_argument(arguments.at(0, "sub"), "what is counted");
  budget.spend(text.size());
  if (part.empty()) return Value(int64_t(count_characters(text)) + 1);
  return Value(int64_t(split(text, part, -1).size()) - 1);
}

template <Sides kFrom>
Value partition_method(Budget& budget, const Value& self, Arguments& arguments) {
  const std::string_view text = self.as_string(),
                         separator = string_argument(arguments.at(0, "sep"), "the separator");
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

Value get_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value& key = arguments.at(0, "key");
  const Value* fallback = arguments.find(1, "default");
  budget.spend(Budget::kItem * self.as_dict().items.size());
  const Value* found = key.is(Kind::kString) ? self.as_dict().find(key.as_string()) : nullptr;
  if (found) return *found;
  return fallback ? *fallback : Value::none();
}

enum class Part { kKey, kValue, kBoth };

template <Part kPart>
Value view_method(Budget& budget, const Value& self, Arguments&) {
  std::vector<Value> view;
  for (const auto& [key, value] : self.as_dict().items) {
    budget.spend(2 * Budget::kItem + key.size());
    if (kPart == Part::kValue) {
      view.push_back(value);
    } else {
      view.push_back(kPart == Part::kKey ? Value(key) : make_sequence({Value(key), value}, Sequence::kTuple));
    }
  }
  return make_sequence(std::move(view), Sequence::kView);
}

template <bool kCount>
Value search_method(Budget& budget, const Value& self, Arguments& arguments) {
  const Value& wanted = arguments.at(0, "value");
  const auto& items = self.as_sequence().items;
  const auto same = [&](const Value& item) { return equal(budget, item, wanted); };
  if (kCount) return Value(int64_t(std::ranges::count_if(items, same)));
  const auto found = std::ranges::find_if(items, same);
  require(found != items.end(), "the value that 'index' looks for is not there");
  return Value(int64_t(found - items.begin()));
}

Value cycle_method(Budget&, const Value& self, Arguments& arguments) {
  std::vector<Value> values;
  while (arguments.has_positional()) values.push_back(arguments.take_first("a value"));
  require(!values.empty(), "'cycle' takes the values that alternate");
  return values[size_t(self.as_loop().index0) % values.size()];
}

Value changed_method(Budget& budget, const Value& self, Arguments& arguments) {
  std::vector<Value> values;
  while (arguments.has_positional()) values.push_back(arguments.take_first("a value"));
  Value now = make_sequence(std::move(values), Sequence::kTuple);
  Loop& loop = self.as_loop();
  const bool same = loop.last_changed && equal(budget, *loop.last_changed, now);
  if (!same) loop.last_changed = std::move(now);
  return Value(!same);
}

const Methods& string_methods() {
  static const Methods all = {
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

const Methods& methods_of(Kind kind) {
  static const Methods dict = {{"get", get_method},
                               {"items", view_method<Part::kBoth>},
                               {"keys", view_method<Part::kKey>},
                               {"values", view_method<Part::kValue>}};
  static const Methods sequence = {{"count", search_method<true>}, {"index", search_method<false>}};
  static const Methods loop = {{"changed", changed_method}, {"cycle", cycle_method}};
  static const Methods none;
  switch (kind) {
    case Kind::kString:
      return string_methods();
    case Kind::kDict:
      return dict;
    case Kind::kSequence:
      return sequence;
    case Kind::kLoop:
      return loop;
    default:
      return none;
  }
}

std::span<const std::string_view> other_methods_of(const Value& value) {
  if (value.is_number()) return kNumberMethods;
  if (value.is(Kind::kString)) return kOtherStringMethods;
  if (value.is(Kind::kDict)) return kOtherDictMethods;
  if (value.is(Kind::kSequence) && value.as_sequence().flavor == Sequence::kList) return kOtherListMethods;
  return {};
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  const auto others = other_methods_of(value);
  return methods_of(value.kind()).contains(name) || std::ranges::find(others, name) != others.end();
}

Value call_method(Budget& budget, const Callable& method, Arguments& arguments) {
  const Methods& known = methods_of(method.self.kind());
  const auto found = known.find(method.name);
  if (found == known.end()) {
    fail(ErrorCode::kUnsupported, "the method '{}' of {} is not supported", method.name,
         describe(method.self));
  }
  if (method.self.is_safe())
    fail(ErrorCode::kUnsupported, "a method of a text behind 'safe' is not supported");
  if (method.self.is(Kind::kString)) budget.spend(method.self.as_string().size());
  Value result = found->second(budget, method.self, arguments);
  arguments.finish();
  return result;
}

}  // namespace heddle::jinja
