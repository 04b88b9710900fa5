// Filters that choose items of lists, or apply another filter or a test to each.
#include <algorithm>

#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/filters.h"
#include "heddle/text/jinja/getter.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/tests.h"

namespace heddle::jinja {
namespace {

struct Keyed {
  Value key, item;
};

template <bool kMax>
Value extreme(Budget& budget, const Value& value, Arguments& arguments) {
  const bool case_sensitive = arguments.truth(0, "case_sensitive", false);
  const Getter getter(budget, arguments.find(1, "attribute"));
  std::optional<Keyed> best;
  for (const Value& item : items_of(budget, value)) {
    Keyed next{without_case(budget, getter(item), case_sensitive), item};
    const auto order = best ? compare(budget, next.key, best->key, "min or max") : std::nullopt;
    if (!best || (order && (kMax ? *order > 0 : *order < 0))) best = std::move(next);
  }
  return best ? best->item : Value::undefined("there is no least or greatest of no items");
}

Value unique(Budget& budget, const Value& value, Arguments& arguments) {
  const bool case_sensitive = arguments.truth(0, "case_sensitive", false);
  const Getter getter(budget, arguments.find(1, "attribute"));
  std::vector<Value> keys, result;
  for (const Value& item : items_of(budget, value)) {
    Value key = without_case(budget, getter(item), case_sensitive);
    require_hashable(key);
    budget.spend(keys.size());
    if (std::ranges::any_of(keys, [&](const Value& other) { return equal(budget, key, other); })) continue;
    keys.push_back(std::move(key));
    result.push_back(item);
  }
  return make_sequence(std::move(result), Sequence::kGenerator);
}

// Jinja takes whatever is false for no items.
std::vector<Value> items_if_true(Budget& budget, const Value& value) {
  return truth(value) ? items_of(budget, value) : std::vector<Value>();
}

Value map(Budget& budget, const Value& value, Arguments& arguments) {
  std::vector<Value> result;
  if (arguments.has_positional()) {
    const std::string name = to_text(budget, arguments.take_first("the name of a filter"));
    const Arguments rest = std::exchange(arguments, {});
    for (const Value& item : items_if_true(budget, value)) {
      budget.spend(Budget::kNode);
      Arguments copy = rest;
      result.push_back(apply_filter(budget, name, item, copy));
    }
  } else {
    const Value* attribute = arguments.find(0, "attribute");
    require(attribute, "map takes the name of a filter or attribute=");
    const Value* fallback = arguments.find(1, "default");
    const Getter getter(budget, attribute);
    for (const Value& item : items_if_true(budget, value)) {
      budget.spend(Budget::kNode);
      result.push_back(getter(item, fallback));
    }
  }
  return make_sequence(std::move(result), Sequence::kGenerator);
}

template <bool kKeep, bool kByAttribute>
Value select(Budget& budget, const Value& value, Arguments& arguments) {
  std::vector<Value> result;
  Arguments rest = std::exchange(arguments, {});
  std::optional<Value> attribute;
  if (kByAttribute) attribute = rest.take_first("the name of an attribute");
  std::optional<std::string> test;
  if (rest.has_positional()) test = to_text(budget, rest.take_first("the name of a test"));
  const Getter getter(budget, attribute ? &*attribute : nullptr);
  for (const Value& item : items_if_true(budget, value)) {
    budget.spend(Budget::kNode);
    const Value tested = getter(item);
    Arguments copy = rest;
    if ((test ? apply_test(budget, *test, tested, copy) : truth(tested)) == kKeep) result.push_back(item);
  }
  return make_sequence(std::move(result), Sequence::kGenerator);
}

Value first(Budget& budget, const Value& value, Arguments&) {
  const auto items = items_of(budget, value);
  return items.empty() ? Value::undefined("there is no first of no items") : items.front();
}

Value last(Budget& budget, const Value& value, Arguments&) {
  const bool generator = value.is(Kind::kSequence) && value.as_sequence().flavor == Sequence::kGenerator;
  require(!generator, "last of {}; put `| list` before it", describe(value));
  const auto items = items_of(budget, value);
  return items.empty() ? Value::undefined("an empty sequence has no last item")
                       : safe_like(value, items.back());
}

}  // namespace

const FilterTable& choice_filters() {
  static const FilterTable all = {
      {"first", first},
      {"last", last},
      {"map", map},
      {"max", extreme<true>},
      {"min", extreme<false>},
      {"reject", select<false, false>},
      {"rejectattr", select<false, true>},
      {"select", select<true, false>},
      {"selectattr", select<true, true>},
      {"unique", unique},
  };
  return all;
}

}  // namespace heddle::jinja
