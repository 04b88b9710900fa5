#include "heddle/text/jinja/filters.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/json.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

template <std::string (*kConvert)(std::string_view)>
Value convert(Budget& budget, const Value& value, Arguments&) {
  return Value(kConvert(to_text(budget, value)));
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

Value trim(Budget& budget, const Value& value, Arguments& arguments) {
  const Value* chars = arguments.find(0, "chars");
  const std::string text = to_text(budget, value);
  if (!chars || chars->is(Kind::kNone)) return Value(strip(text, Sides::kBoth));
  require(chars->is(Kind::kString), "trim with {}; a string is expected", describe(*chars));
  return Value(strip(text, Sides::kBoth, chars->as_string()));
}

Value replace_filter(Budget& budget, const Value& value, Arguments& arguments) {
  const std::string text = to_text(budget, value), old = to_text(budget, arguments.at(0, "old"));
  const std::string with = to_text(budget, arguments.at(1, "new"));
  const Value* count = arguments.find(2, "count");
  const int64_t most = count && !count->is(Kind::kNone) ? arguments.integer(2, "count", -1) : -1;
  return Value(replace(budget, text, {.old = old, .with = with, .most = most}));
}

Value indent(Budget& budget, const Value& value, Arguments& arguments) {
  constexpr int64_t kMostSpaces = 1000;
  require(value.is(Kind::kString), "indent of {}; a string is expected", describe(value));
  const Value* width = arguments.find(0, "width");
  const bool text_width = width && width->is(Kind::kString);
  const int64_t spaces = text_width ? 0 : arguments.integer(0, "width", 4);
  require(spaces <= kMostSpaces, "indent by {} spaces; {} are the most", spaces, kMostSpaces);
  const std::string indention =
      text_width ? width->as_string() : std::string(size_t(std::max<int64_t>(spaces, 0)), ' ');
  const bool first = arguments.truth(1, "first", false), blank = arguments.truth(2, "blank", false);
  const std::string text = value.as_string() + "\n";
  std::string result = first ? indention : "";
  bool begins = true;
  for (std::string_view line : split_lines(text)) {
    budget.spend(1 + indention.size() + line.size());
    if (!begins) result += '\n';
    if (!begins && (blank || !line.empty())) result += indention;
    result += line;
    begins = false;
  }
  return Value(std::move(result));
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

Value safe(Budget& budget, const Value& value, Arguments&) {
  return Value(to_text(budget, value)).marked_safe();
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable all = {
      {"capitalize", convert<capitalize>},
      {"count", length},
      {"d", default_filter},
      {"default", default_filter},
      {"indent", indent},
      {"length", length},
      {"lower", convert<lower>},
      {"replace", replace_filter},
      {"safe", safe},
      {"string", string_filter},
      {"title", convert<title_words>},
      {"tojson", to_json},
      {"trim", trim},
      {"upper", convert<upper>},
  };
  return all;
}

namespace {

const FilterTable& filters() {
  static const FilterTable all = [] {
    FilterTable table = text_filters();
    table.insert(list_filters().begin(), list_filters().end());
    table.insert(number_filters().begin(), number_filters().end());
    return table;
  }();
  return all;
}

// Filters that accept a safe text. Jinja's other filters return a safe text, which later escapes whatever it
// is joined with.
constexpr std::string_view kForSafe[] = {"count", "d",    "default", "int",   "length",
                                         "list",  "safe", "string",  "tojson"};

}  // namespace

bool is_filter(std::string_view name) {
  return filters().contains(name);
}

std::string filter_names() {
  std::string names;
  for (const auto& [name, unused] : filters()) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

Value apply_filter(Budget& budget, std::string_view name, const Value& value, Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) fail(ErrorCode::kUnsupported, "the filter '{}' is not supported", name);
  if (value.is_safe() && std::ranges::find(kForSafe, name) == std::end(kForSafe)) {
    fail(ErrorCode::kUnsupported, "the filter '{}' behind 'safe' is not supported", name);
  }
  Value result = found->second(budget, value, arguments);
  arguments.finish();
  return result;
}

}  // namespace heddle::jinja
