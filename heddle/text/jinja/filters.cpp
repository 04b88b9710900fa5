#include "heddle/text/jinja/filters.h"

#include <fmt/format.h>

#include "heddle/text/jinja/filter_tables.h"

namespace heddle::jinja {
namespace {

// Filters of Jinja whose results are random, or which a chat has no use for.
template <class Name>
Value refuse(Budget&, const Value&, Arguments&) {
  fail(ErrorCode::kUnsupported, "the filter '{}' is not supported", Name::kName);
}
struct Random {
  static constexpr const char* kName = "random";
};
struct Urlize {
  static constexpr const char* kName = "urlize";
};

const FilterTable& missing_filters() {
  static const FilterTable all = {{"random", refuse<Random>}, {"urlize", refuse<Urlize>}};
  return all;
}

const FilterTable& filters() {
  static const FilterTable all = [] {
    FilterTable table = text_filters();
    for (const FilterTable* more : {&layout_filters(), &markup_filters(), &list_filters(), &choice_filters(),
                                    &number_filters(), &missing_filters()}) {
      table.insert(more->begin(), more->end());
    }
    return table;
  }();
  return all;
}

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
  if (found == filters().end())
    fail(ErrorCode::kUnsupported, "the filter '{}' is not known; known are {}", name, filter_names());
  Value result = found->second(budget, value, arguments);
  arguments.finish();
  return result;
}

}  // namespace heddle::jinja
