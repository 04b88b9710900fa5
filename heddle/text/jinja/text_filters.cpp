// Filters for texts, and for values of any type.
#include <algorithm>

#include "heddle/text/jinja/access.h"
#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/json.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/percent_format.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

template <std::string (*kConvert)(std::string_view)>
Value convert(Budget& budget, const Value& value, Arguments&) {
  return safe_like(value, Value(kConvert(to_text(budget, value))));
}

// Capitalises each word; words begin after white space and - ( { [ <.
std::string title_words(std::string_view text) {
  const auto separates = [](std::string_view character) {
    return is_space(first_char(character).code_point) ||
           std::string_view("-({[<").find(character) != std::string::npos;
  };
  std::string result;
  while (!text.empty()) {
    const bool separator = separates(text.substr(0, first_char(text).size));
    size_t end = 0;
    while (end < text.size()) {
      const size_t size = first_char(text.substr(end)).size;
      if (separates(text.substr(end, size)) != separator) break;
      end += size;
    }
    const size_t first = first_char(text).size;
    result += upper(text.substr(0, first)) + lower(text.substr(first, end - first));
    text.remove_prefix(end);
  }
  return result;
}

Value title_filter(Budget& budget, const Value& value, Arguments&) {
  return Value(title_words(to_text(budget, value)));
}

Value trim(Budget& budget, const Value& value, Arguments& arguments) {
  const Value* chars = arguments.find(0, "chars");
  const std::string text = to_text(budget, value);
  if (!chars || chars->is(Kind::kNone)) return safe_like(value, Value(strip(text, Sides::kBoth)));
  require(chars->is(Kind::kString), "trim with {}; a string is expected", describe(*chars));
  return safe_like(value, Value(strip(text, Sides::kBoth, chars->as_string())));
}

Value replace_filter(Budget& budget, const Value& value, Arguments& arguments) {
  const std::string text = to_text(budget, value), old = to_text(budget, arguments.at(0, "old"));
  const std::string with = to_text(budget, arguments.at(1, "new"));
  const Value* count = arguments.find(2, "count");
  const int64_t most = count && !count->is(Kind::kNone) ? arguments.integer(2, "count", -1) : -1;
  return Value(replace(budget, text, {.old = old, .with = with, .most = most}));
}

Value length(Budget& budget, const Value& value, Arguments&) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return Value(int64_t{0});
    case Kind::kString:
      budget.spend(value.as_string().size());
      return Value(int64_t(count_characters(value.as_string())));
    case Kind::kDict:
      return Value(int64_t(value.as_dict().items.size()));
    case Kind::kSequence:
      if (value.as_sequence().flavor != Sequence::kGenerator)
        return Value(int64_t(value.as_sequence().items.size()));
      break;
    case Kind::kLoop:
      return Value(int64_t(value.as_loop().items.size()));
    default:
      break;
  }
  fail(ErrorCode::kInvalidArgument, "{} has no length", describe(value));
}

Value default_filter(Budget&, const Value& value, Arguments& arguments) {
  const Value* fallback = arguments.find(0, "default_value");
  const bool of_false = arguments.truth(1, "boolean", false);
  if (!value.is(Kind::kUndefined) && (!of_false || truth(value))) return value;
  return fallback ? *fallback : Value("");
}

Value string_filter(Budget& budget, const Value& value, Arguments&) {
  return value.is(Kind::kString) ? value : Value(to_text(budget, value));
}

// Formats with the arguments as a tuple, or as a dict if they have names.
Value format(Budget& budget, const Value& value, Arguments& arguments) {
  const Value text = value.is(Kind::kString) ? value : Value(to_text(budget, value));
  if (arguments.named().empty())
    return percent_format(budget, text, make_sequence(arguments.take_positional(), Sequence::kTuple));
  require(arguments.take_positional().empty(), "format takes values with names or without, not both");
  Dict::Items items;
  for (const auto& [name, item] : arguments.take_named()) items.emplace_back(Value(name), item);
  return percent_format(budget, text, make_dict(items));
}

Value attr(Budget& budget, const Value& value, Arguments& arguments) {
  return own_attribute_of(value, to_text(budget, arguments.at(0, "name")));
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable all = {
      {"attr", attr},
      {"capitalize", convert<capitalize>},
      {"count", length},
      {"d", default_filter},
      {"default", default_filter},
      {"format", format},
      {"length", length},
      {"lower", convert<lower>},
      {"replace", replace_filter},
      {"string", string_filter},
      {"title", title_filter},
      {"tojson", to_json},
      {"trim", trim},
      {"upper", convert<upper>},
  };
  return all;
}

}  // namespace heddle::jinja
