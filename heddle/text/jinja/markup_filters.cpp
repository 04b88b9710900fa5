// Filters that make texts fit for HTML and addresses.
#include <fmt/format.h>

#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/python_text.h"

namespace heddle::jinja {
namespace {

Value safe(Budget& budget, const Value& value, Arguments&) {
  return Value(to_text(budget, value)).marked_safe();
}

Value escape_filter(Budget& budget, const Value& value, Arguments&) {
  return escaped(budget, value);
}

Value force_escape(Budget& budget, const Value& value, Arguments&) {
  return escaped(budget, Value(to_text(budget, value)));
}

Value strip_tags_filter(Budget& budget, const Value& value, Arguments&) {
  return Value(strip_tags(to_text(budget, value)));
}

// Percent-encodes all bytes but letters, digits, _.-~ and those of `safe`.
std::string quote(Budget& budget, const Value& value, std::string_view safe, std::string_view space) {
  std::string result;
  for (const char c : to_text(budget, value)) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter || std::string_view("_.-~").find(c) != std::string_view::npos ||
        safe.find(c) != std::string_view::npos) {
      result += c;
    } else if (c == ' ') {
      result += space;
    } else {
      result += fmt::format("%{:02X}", uint8_t(c));
    }
  }
  budget.spend(result.size());
  return result;
}

Value urlencode(Budget& budget, const Value& value, Arguments&) {
  const bool pairs = value.is(Kind::kDict) || value.is(Kind::kSequence) || value.is(Kind::kUndefined);
  if (!pairs) return Value(quote(budget, value, "/", "%20"));
  std::string result;
  const auto add = [&](const Value& key, const Value& item) {
    if (!result.empty()) result += '&';
    result += quote(budget, key, "", "+") + "=" + quote(budget, item, "", "+");
  };
  if (value.is(Kind::kDict)) {
    for (const auto& [key, item] : value.as_dict().items) add(key, item);
    return Value(std::move(result));
  }
  for (const Value& item : items_of(budget, value)) {
    const auto both = items_of(budget, item);
    require(both.size() == 2, "urlencode of {} values; a name and its value are expected", both.size());
    add(both[0], both[1]);
  }
  return Value(std::move(result));
}

Value xmlattr(Budget& budget, const Value& value, Arguments& arguments) {
  const bool space = arguments.truth(0, "autospace", true);
  require_defined(value);
  require(value.is(Kind::kDict), "xmlattr of {}; a dict is expected", describe(value));
  std::string result;
  for (const auto& [key, item] : value.as_dict().items) {
    if (item.is(Kind::kNone) || item.is(Kind::kUndefined)) continue;
    require(key.is(Kind::kString) && key.as_string().find_first_of(" \t\n\r\f\v/>=") == std::string::npos,
            "xmlattr with the name {}; a text without spaces and / > = is expected", to_repr(budget, key));
    if (!result.empty()) result += ' ';
    result += escaped(budget, key).as_string() + "=\"" + escaped(budget, item).as_string() + "\"";
  }
  return Value(space && !result.empty() ? " " + result : result);
}

}  // namespace

const FilterTable& markup_filters() {
  static const FilterTable all = {
      {"e", escape_filter}, {"escape", escape_filter},        {"forceescape", force_escape},
      {"safe", safe},       {"striptags", strip_tags_filter}, {"urlencode", urlencode},
      {"xmlattr", xmlattr}};
  return all;
}

}  // namespace heddle::jinja
