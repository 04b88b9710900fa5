// Filters that lay texts out in lines and columns.
#include <algorithm>

#include "heddle/text/jinja/character_class.h"
#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/format_spec.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/operators.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

Value indent(Budget& budget, const Value& value, Arguments& arguments) {
  constexpr int64_t kMostSpaces = 1000;
  require_defined(value);
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
  return safe_like(value, Value(std::move(result)));
}

Value center(Budget& budget, const Value& value, Arguments& arguments) {
  const int64_t width = checked_width(budget, arguments.integer(0, "width", 80));
  const std::string text = to_text(budget, value);
  const int64_t missing = std::max<int64_t>(width - int64_t(count_characters(text)), 0);
  const int64_t left = missing / 2 + (missing & width & 1);  // as in Python
  return safe_like(value,
                   Value(std::string(size_t(left), ' ') + text + std::string(size_t(missing - left), ' ')));
}

std::string first_characters(const std::vector<std::string_view>& all, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < std::min(count, int64_t(all.size())); ++i) text += all[size_t(i)];
  return text;
}

std::optional<int64_t> size_of_container(const Value& value) {
  if (value.is(Kind::kDict)) return int64_t(value.as_dict().items.size());
  if (!value.is(Kind::kSequence) || value.as_sequence().flavor == Sequence::kGenerator) return std::nullopt;
  return int64_t(value.as_sequence().items.size());
}

Value truncate(Budget& budget, const Value& value, Arguments& arguments) {
  const int64_t length = arguments.integer(0, "length", 255);
  const bool kill_words = arguments.truth(1, "killwords", false);
  const Value* given = arguments.find(2, "end");
  const Value end = given ? *given : Value("...");
  const Value* leeway = arguments.find(3, "leeway");
  const int64_t room = leeway && !leeway->is(Kind::kNone) ? arguments.integer(3, "leeway", 5) : 5;
  if (value.is(Kind::kUndefined)) return value;
  if (const auto size = size_of_container(value); size && *size - room <= length) return value;
  require(value.is(Kind::kString) && end.is(Kind::kString),
          "truncate of {} with {} at the end; strings are expected", describe(value), describe(end));
  const int64_t end_length = int64_t(count_characters(end.as_string()));
  require(length >= end_length && room >= 0, "truncate to {} characters with an end of {} and a leeway of {}",
          length, end_length, room);
  budget.spend(value.as_string().size() * 8);
  const auto all = characters(value.as_string());
  if (int64_t(all.size()) - room <= length) return value;
  std::string kept = first_characters(all, length - end_length);
  if (!kill_words) kept = split(kept, " ", 1, Sides::kRight).front();
  return apply_binary(budget, "+", safe_like(value, Value(std::move(kept))), end);
}

struct Wrapping {
  int64_t width = 79;
  bool break_words = true;
};

// Words and the spaces between them.
std::vector<std::vector<std::string_view>> chunks_of(std::string_view line) {
  std::vector<std::vector<std::string_view>> chunks;
  bool spaces = false;
  for (std::string_view character : characters(line)) {
    const bool space = std::string_view("\t\n\x0b\x0c\r ").find(character) != std::string_view::npos;
    if (chunks.empty() || space != spaces) chunks.emplace_back();
    chunks.back().push_back(character);
    spaces = space;
  }
  return chunks;
}

bool is_blank(const std::vector<std::string_view>& chunk) {
  return std::ranges::all_of(chunk, [](std::string_view c) { return strip(c, Sides::kLeft).empty(); });
}

// As Python's textwrap: as many chunks as fit make a line, without the spaces at its ends; the first line keeps
// those at its beginning.
std::vector<std::string> wrap(std::string_view line, const Wrapping& how) {
  auto chunks = chunks_of(line);
  std::ranges::reverse(chunks);
  std::vector<std::string> lines;
  while (!chunks.empty()) {
    std::vector<std::vector<std::string_view>> kept;
    int64_t length = 0;
    if (!lines.empty() && is_blank(chunks.back())) chunks.pop_back();
    while (!chunks.empty() && length + int64_t(chunks.back().size()) <= how.width) {
      length += int64_t(chunks.back().size());
      kept.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && int64_t(chunks.back().size()) > how.width) {
      auto& word = chunks.back();
      if (how.break_words) {
        const auto end = word.begin() + std::max<int64_t>(how.width - length, 0);
        kept.emplace_back(word.begin(), end);
        word.erase(word.begin(), end);
      } else if (kept.empty()) {
        kept.push_back(std::move(word));
        chunks.pop_back();
      }
    }
    if (!kept.empty() && is_blank(kept.back())) kept.pop_back();
    if (kept.empty()) continue;
    std::string text;
    for (const auto& chunk : kept) text += first_characters(chunk, int64_t(chunk.size()));
    lines.push_back(std::move(text));
  }
  return lines;
}

Value wordwrap(Budget& budget, const Value& value, Arguments& arguments) {
  Wrapping how{.width = arguments.integer(0, "width", 79),
               .break_words = arguments.truth(1, "break_long_words", true)};
  const Value* given = arguments.find(2, "wrapstring");
  const bool hyphens = arguments.truth(3, "break_on_hyphens", true);
  const std::string between = given && !given->is(Kind::kNone) ? to_text(budget, *given) : "\n";
  require_defined(value);
  require(value.is(Kind::kString) && how.width > 0, "wordwrap of {} to {} characters", describe(value),
          how.width);
  const std::string& text = value.as_string();
  if (hyphens && text.find('-') != std::string::npos) {
    fail(ErrorCode::kUnsupported, "wordwrap at hyphens is not supported; break_on_hyphens=false is");
  }
  budget.spend(text.size() * Budget::kItem);
  std::string result;
  bool begins = true;
  for (std::string_view line : split_lines(text)) {
    if (!begins) result += between;
    begins = false;
    const auto lines = wrap(line, how);
    budget.spend((lines.size() + 1) * between.size());
    for (size_t i = 0; i < lines.size(); ++i) result += (i > 0 ? between : "") + lines[i];
  }
  return Value(std::move(result));
}

Value wordcount(Budget& budget, const Value& value, Arguments&) {
  int64_t count = 0;
  bool inside = false;
  for (uint32_t c : code_points(to_text(budget, value))) {
    const bool word = c == '_' || is_alphanumeric(c);
    count += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value(count);
}

// The value with sorted keys, as pprint writes dicts.
Value with_sorted_keys(Budget& budget, const Value& value) {
  if (value.is(Kind::kSequence) && value.as_sequence().is_list()) {
    std::vector<Value> items;
    for (const Value& item : value.as_sequence().items) items.push_back(with_sorted_keys(budget, item));
    return make_sequence(std::move(items), value.as_sequence().flavor);
  }
  if (!value.is(Kind::kDict)) return value;
  Dict::Items items;
  for (const auto& [key, item] : value.as_dict().items)
    items.emplace_back(key, with_sorted_keys(budget, item));
  std::ranges::stable_sort(
      items, [&](const auto& a, const auto& b) { return compare(budget, a.first, b.first, "pprint") < 0; });
  return make_dict(std::move(items));
}

Value pprint(Budget& budget, const Value& value, Arguments&) {
  constexpr size_t kWidth = 80;
  std::string text = to_repr(budget, with_sorted_keys(budget, value));
  const bool leaf = !value.is(Kind::kSequence) && !value.is(Kind::kDict) && !value.is(Kind::kString);
  if (!leaf && count_characters(text) > kWidth)
    fail(ErrorCode::kUnsupported, "pprint of more than one line is not supported; tojson(indent=2) is");
  return Value(std::move(text));
}

}  // namespace

const FilterTable& layout_filters() {
  static const FilterTable all = {{"center", center},     {"indent", indent},       {"pprint", pprint},
                                  {"truncate", truncate}, {"wordcount", wordcount}, {"wordwrap", wordwrap}};
  return all;
}

}  // namespace heddle::jinja
