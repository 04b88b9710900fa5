// Filters for lists and dicts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "heddle/text/jinja/access.h"
#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/filters.h"
#include "heddle/text/jinja/operators.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/jinja/tests.h"

namespace heddle::jinja {
namespace {

// Reads `attribute="a.b.0"` from each item. Without an attribute it returns the item.
class Getter {
 public:
  Getter(Budget& budget, const Value* attribute) : budget_(budget) {
    if (!attribute || attribute->is(Kind::kNone)) return;
    if (!attribute->is(Kind::kString)) {
      parts_.push_back(*attribute);
      return;
    }
    for (std::string_view part : split(attribute->as_string(), ".", -1)) {
      const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
      constexpr size_t kMostDigits = 9;
      parts_.push_back(digits && part.size() <= kMostDigits ? Value(int64_t(std::stol(std::string(part))))
                                                            : Value(part));
    }
  }

  Value operator()(Value item, const Value* fallback = nullptr) const {
    for (const Value& part : parts_) {
      item = item_of(budget_, item, part);
      if (fallback && !fallback->is(Kind::kNone) && item.is(Kind::kUndefined)) item = *fallback;
    }
    return item;
  }

 private:
  Budget& budget_;
  std::vector<Value> parts_;
};

Value without_case(Budget& budget, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::kString)) return value;
  budget.spend(value.as_string().size());
  return Value(lower(value.as_string()));
}

struct Keyed {
  Value key, item;
};

// Sorts as Python does, which keeps the order of equal items in both directions.
std::vector<Value> sorted(Budget& budget, std::vector<Keyed> items, bool reverse) {
  for (const Keyed& item : items) {
    const bool nan = item.key.is(Kind::kFloat) && std::isnan(item.key.as_float());
    if (nan) fail(ErrorCode::kUnsupported, "a sort with a NaN is not supported");
  }
  std::ranges::stable_sort(items, [&](const Keyed& a, const Keyed& b) {
    const auto order = compare(budget, a.key, b.key, "sort");
    return order && (reverse ? *order > 0 : *order < 0);
  });
  std::vector<Value> result;
  for (Keyed& item : items) result.push_back(std::move(item.item));
  return result;
}

Value sort(Budget& budget, const Value& value, Arguments& arguments) {
  const bool reverse = arguments.truth(0, "reverse", false);
  const bool case_sensitive = arguments.truth(1, "case_sensitive", false);
  const Value* attribute = arguments.find(2, "attribute");
  if (attribute && attribute->is(Kind::kString) && attribute->as_string().find(',') != std::string::npos) {
    fail(ErrorCode::kUnsupported, "a sort by several attributes is not supported");
  }
  const Getter getter(budget, attribute);
  std::vector<Keyed> items;
  for (const Value& item : items_of(budget, value)) {
    items.push_back({without_case(budget, getter(item), case_sensitive), item});
  }
  return make_sequence(sorted(budget, std::move(items), reverse));
}

Value dictsort(Budget& budget, const Value& value, Arguments& arguments) {
  require(value.is(Kind::kDict), "dictsort of {}; a dict is expected", describe(value));
  const bool case_sensitive = arguments.truth(0, "case_sensitive", false);
  const Value* given = arguments.find(1, "by");
  const std::string by = given ? to_text(budget, *given) : "key";
  require(by == "key" || by == "value", "dictsort by '{}'; key or value is expected", by);
  const bool reverse = arguments.truth(2, "reverse", false);
  std::vector<Keyed> items;
  for (const auto& [key, item] : value.as_dict().items) {
    const Value pair = make_sequence({Value(key), item}, Sequence::kTuple);
    items.push_back({without_case(budget, by == "key" ? Value(key) : item, case_sensitive), pair});
  }
  return make_sequence(sorted(budget, std::move(items), reverse));
}

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
    require(!key.is(Kind::kDict) && !key.is(Kind::kSequence), "unique by {}; a string or number is expected",
            describe(key));
    budget.spend(keys.size());
    if (std::ranges::any_of(keys, [&](const Value& other) { return equal(budget, key, other); })) continue;
    keys.push_back(std::move(key));
    result.push_back(item);
  }
  return make_sequence(std::move(result), Sequence::kGenerator);
}

Value map(Budget& budget, const Value& value, Arguments& arguments) {
  std::vector<Value> result;
  if (arguments.has_positional()) {
    const std::string name = to_text(budget, arguments.take_first("the name of a filter"));
    const Arguments rest = std::exchange(arguments, {});
    for (const Value& item : items_of(budget, value)) {
      budget.spend(Budget::kNode);
      Arguments copy = rest;
      result.push_back(apply_filter(budget, name, item, copy));
    }
  } else {
    const Value* attribute = arguments.find(0, "attribute");
    require(attribute, "map takes the name of a filter or attribute=");
    const Value* fallback = arguments.find(1, "default");
    const Getter getter(budget, attribute);
    for (const Value& item : items_of(budget, value)) {
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
  for (const Value& item : items_of(budget, value)) {
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
  require(!generator && !value.is(Kind::kUndefined), "last of {}; put `| list` before it", describe(value));
  const auto items = items_of(budget, value);
  return items.empty() ? Value::undefined("there is no last of no items") : items.back();
}

Value list(Budget& budget, const Value& value, Arguments&) {
  return make_sequence(items_of(budget, value));
}

Value reverse(Budget& budget, const Value& value, Arguments&) {
  auto items = items_of(budget, value);
  std::ranges::reverse(items);
  if (value.is(Kind::kString)) {
    std::string text;
    for (const Value& item : items) text += item.as_string();
    return Value(std::move(text));
  }
  const bool generator = value.is(Kind::kSequence) && value.as_sequence().flavor == Sequence::kGenerator;
  const bool made_list = generator || value.is(Kind::kUndefined);
  return make_sequence(std::move(items), made_list ? Sequence::kList : Sequence::kGenerator);
}

Value join(Budget& budget, const Value& value, Arguments& arguments) {
  const Value* given = arguments.find(0, "d");
  const std::string between = given ? to_text(budget, *given) : "";
  const Getter getter(budget, arguments.find(1, "attribute"));
  std::string result;
  bool begins = true;
  for (const Value& item : items_of(budget, value)) {
    budget.spend(between.size());
    if (!begins) result += between;
    result += to_text(budget, getter(item));
    begins = false;
  }
  return Value(std::move(result));
}

Value items(Budget& budget, const Value& value, Arguments&) {
  std::vector<Value> pairs;
  require(value.is(Kind::kDict) || value.is(Kind::kUndefined), "items of {}; a dict is expected",
          describe(value));
  if (value.is(Kind::kDict)) {
    for (const auto& [key, item] : value.as_dict().items) {
      budget.spend(2 * Budget::kItem + key.size());
      pairs.push_back(make_sequence({Value(key), item}, Sequence::kTuple));
    }
  }
  return make_sequence(std::move(pairs), Sequence::kGenerator);
}

Value sum(Budget& budget, const Value& value, Arguments& arguments) {
  const Getter getter(budget, arguments.find(0, "attribute"));
  const Value* start = arguments.find(1, "start");
  Value total = start ? *start : Value(int64_t{0});
  require(!total.is(Kind::kString), "a sum of strings; 'join' puts them together");
  for (const Value& item : items_of(budget, value)) total = apply_binary(budget, "+", total, getter(item));
  return total;
}

Value batch(Budget& budget, const Value& value, Arguments& arguments) {
  const int64_t size = arguments.integer(0, "linecount", 0);
  const Value* fill = arguments.find(1, "fill_with");
  constexpr int64_t kMost = 100'000;
  require(size > 0 && size <= kMost, "batch of {}; 1 to {} are expected", size, kMost);
  std::vector<Value> rows, row;
  const auto end_row = [&] { rows.push_back(make_sequence(std::exchange(row, {}))); };
  for (const Value& item : items_of(budget, value)) {
    if (int64_t(row.size()) == size) end_row();
    row.push_back(item);
  }
  if (!row.empty()) {
    budget.spend(Budget::kItem * uint64_t(size));
    if (fill && !fill->is(Kind::kNone)) row.resize(size_t(size), *fill);
    end_row();
  }
  return make_sequence(std::move(rows), Sequence::kGenerator);
}

}  // namespace

const FilterTable& list_filters() {
  static const FilterTable all = {
      {"batch", batch},
      {"dictsort", dictsort},
      {"first", first},
      {"items", items},
      {"join", join},
      {"last", last},
      {"list", list},
      {"map", map},
      {"max", extreme<true>},
      {"min", extreme<false>},
      {"reject", select<false, false>},
      {"rejectattr", select<false, true>},
      {"reverse", reverse},
      {"select", select<true, false>},
      {"selectattr", select<true, true>},
      {"sort", sort},
      {"sum", sum},
      {"unique", unique},
  };
  return all;
}

}  // namespace heddle::jinja
