#include "heddle/text/jinja/brace_format.h"

#include <algorithm>

#include "heddle/text/jinja/access.h"
#include "heddle/text/jinja/format_spec.h"
#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/markup.h"

namespace heddle::jinja {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A field {name!conversion:spec}.
struct FieldText {
  std::string_view name, spec;
  char conversion = 0;
};

// The end of the field that begins at `text`, after its opening brace; npos if it has none. Braces inside of
// brackets do not count.
size_t end_of_field(std::string_view text) {
  int depth = 1;
  bool in_name = true, bracket = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_name && bracket) {
      bracket = c != ']';
      continue;
    }
    if (in_name && c == '[') bracket = true;
    if (c == ':' || c == '!') in_name = false;
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0) return i;
  }
  return std::string_view::npos;
}

FieldText split_field(std::string_view text) {
  FieldText field;
  size_t end = 0;
  for (bool bracket = false; end < text.size(); ++end) {
    if (text[end] == '[') bracket = true;
    if (text[end] == ']') bracket = false;
    if (!bracket && (text[end] == ':' || text[end] == '!')) break;
  }
  field.name = text.substr(0, end);
  require(field.name.find('{') == std::string_view::npos, "a format with a brace in the name '{}'",
          field.name);
  if (end == text.size()) return field;
  if (text[end] == '!') {
    require(end + 1 < text.size(), "a format with a '!' and no conversion");
    field.conversion = text[end + 1];
    end += 2;
    require(end == text.size() || text[end] == ':', "a format with text between the conversion and ':'");
  }
  if (end < text.size()) field.spec = text.substr(end + 1);
  return field;
}

class BraceFormatter {
 public:
  BraceFormatter(Budget& budget, bool safe, std::vector<Value> positional, Value named)
      : budget_(budget), safe_(safe), positional_(std::move(positional)), named_(std::move(named)) {}

  std::string run(std::string_view text, int depth);

 private:
  Value first_value(std::string_view name);
  Value value_of(std::string_view name);
  std::string field_text(const FieldText& field, int depth);

  Budget& budget_;
  bool safe_;
  std::vector<Value> positional_;
  Value named_;
  int64_t counted_ = 0;  // fields without a name; -1 after one with a number
};

std::string BraceFormatter::run(std::string_view text, int depth) {
  require(depth >= 0, "a format is nested three deep; at most two levels are supported");
  std::string out;
  while (!text.empty()) {
    const size_t at = std::min(text.find_first_of("{}"), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    if (text.size() > 1 && text[1] == text[0]) {
      out += text[0];
      text.remove_prefix(2);
      continue;
    }
    require(text[0] == '{', "a format with a single '}}'");
    text.remove_prefix(1);
    const size_t end = end_of_field(text);
    require(end != std::string_view::npos, "a format with a '{{' that has no end");
    const std::string made = field_text(split_field(text.substr(0, end)), depth);
    budget_.spend(Budget::kNode + made.size());
    out += made;
    text.remove_prefix(end + 1);
  }
  return out;
}

Value BraceFormatter::first_value(std::string_view name) {
  if (!name.empty() && !is_digits(name)) {
    const Value key{name};
    const Value* found = named_.is(Kind::kDict) ? named_.as_dict().find(budget_, key) : nullptr;
    require(found, "a format asks for '{}', which is not given", name);
    return *found;
  }
  const bool counts = name.empty();
  require(counts ? counted_ >= 0 : counted_ <= 0, "a format with fields both with and without numbers");
  const Value place = counts ? Value(counted_++) : integer_from_digits(name);
  if (!counts) counted_ = -1;
  const bool given = place.is_integer() && place.as_int() < int64_t(positional_.size());
  require(given, "a format asks for value {} of {}", digits_of(place), positional_.size());
  return positional_[size_t(place.as_int())];
}

// Follows a name such as 0.a[b].
Value BraceFormatter::value_of(std::string_view name) {
  const size_t first = std::min(name.find_first_of(".["), name.size());
  require(first > 0 || name.empty(), "a format with '{}' after no name", name);
  Value value = first_value(name.substr(0, first));
  name.remove_prefix(first);
  while (!name.empty()) {
    const bool attribute = name[0] == '.';
    require(attribute || name[0] == '[', "a format with '{}' after a ']'", name);
    name.remove_prefix(1);
    const size_t end = attribute ? std::min(name.find_first_of(".["), name.size()) : name.find(']');
    require(end != std::string_view::npos && end > 0, "a format with an empty or open '[' or '.'");
    const std::string_view part = name.substr(0, end);
    value = attribute ? attribute_of(value, part)
                      : item_of(budget_, value, is_digits(part) ? integer_from_digits(part) : Value(part));
    name.remove_prefix(attribute ? end : end + 1);
  }
  return value;
}

std::string BraceFormatter::field_text(const FieldText& field, int depth) {
  Value value = value_of(field.name);
  if (field.conversion) {
    require(std::string_view("sra").find(field.conversion) != std::string_view::npos,
            "a format with the conversion '{}'; s, r and a are Python's", field.conversion);
    if (field.conversion == 's') {
      value = Value(to_text(budget_, value));
    } else {
      const std::string text = to_repr(budget_, value);
      value = Value(field.conversion == 'r' ? text : to_ascii(text));
    }
  }
  const std::string spec = run(field.spec, depth - 1);
  if (!safe_) return format_value(budget_, value, spec);
  require(!value.is_safe() || spec.empty(), "the format '{}' for a text after 'safe'", spec);
  return value.is_safe() ? value.as_string() : escape_html(format_value(budget_, value, spec));
}

constexpr int kLevels = 2;  // formats may be inside of formats, as in Python

}  // namespace

Value brace_format(Budget& budget, const Value& format, Arguments& arguments) {
  std::vector<Value> positional = arguments.take_positional();
  Dict::Items named;
  for (const auto& [name, value] : arguments.take_named()) named.emplace_back(Value(name), value);
  BraceFormatter formatter(budget, format.is_safe(), std::move(positional), make_dict(std::move(named)));
  return safe_like(format, Value(formatter.run(format.as_string(), kLevels)));
}

Value brace_format_map(Budget& budget, const Value& format, Arguments& arguments) {
  BraceFormatter formatter(budget, format.is_safe(), {}, arguments.at(0, ""));
  return safe_like(format, Value(formatter.run(format.as_string(), kLevels)));
}

}  // namespace heddle::jinja
