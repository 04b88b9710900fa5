// Filters that order, group and join the items of lists and dicts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/getter.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/operators.h"
#include "heddle/text/jinja/python_text.h"

namespace heddle::jinja {
namespace {

struct Keyed {
  Value key, item;
};

// Sorts as Python does, which keeps the order of equal items in both directions.
std::vector<Value> sorted(Budget& budget, std::vector<Keyed> items, bool reverse) {
  for (const Keyed& item : items) {
    const auto is_nan = [](const Value& key) { return key.is(Kind::kFloat) && std::isnan(key.as_float()); };
    const bool list = item.key.is(Kind::kSequence);
    if (is_nan(item.key) || (list && std::ranges::any_of(item.key.as_sequence().items, is_nan)))
      fail(ErrorCode::kUnsupported, "a sort with a NaN is not supported");
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
  std::vector<Getter> getters;
  if (attribute && attribute->is(Kind::kString)) {
    for (std::string_view part : split(attribute->as_string(), ",", -1)) {
      const Value name(part);
      getters.emplace_back(budget, &name);
    }
  } else {
    getters.emplace_back(budget, attribute);
  }
  std::vector<Keyed> items;
  for (const Value& item : items_of(budget, value)) {
    std::vector<Value> keys;
    for (const Getter& getter : getters) keys.push_back(without_case(budget, getter(item), case_sensitive));
    items.push_back({make_sequence(std::move(keys)), item});
  }
  return make_sequence(sorted(budget, std::move(items), reverse));
}

Value dictsort(Budget& budget, const Value& value, Arguments& arguments) {
  require_defined(value);
  require(value.is(Kind::kDict), "dictsort of {}; a dict is expected", describe(value));
  const bool case_sensitive = arguments.truth(0, "case_sensitive", false);
  const Value* given = arguments.find(1, "by");
  const std::string by = given ? to_text(budget, *given) : "key";
  require(by == "key" || by == "value", "dictsort by '{}'; key or value is expected", by);
  const bool reverse = arguments.truth(2, "reverse", false);
  std::vector<Keyed> items;
  for (const auto& [key, item] : value.as_dict().items) {
    const Value pair = make_sequence({key, item}, Sequence::kTuple);
    items.push_back({without_case(budget, by == "key" ? key : item, case_sensitive), pair});
  }
  return make_sequence(sorted(budget, std::move(items), reverse));
}

Value groupby(Budget& budget, const Value& value, Arguments& arguments) {
  const Getter getter(budget, &arguments.at(0, "attribute"));
  const Value* fallback = arguments.find(1, "default");
  const bool case_sensitive = arguments.truth(2, "case_sensitive", false);
  std::vector<Keyed> items;
  for (const Value& item : items_of(budget, value))
    items.push_back({without_case(budget, getter(item, fallback), case_sensitive), item});
  std::vector<Value> groups, group;
  std::optional<Value> key;
  const auto end_group = [&] {
    if (group.empty()) return;
    const Value name = case_sensitive ? *key : getter(group.front(), fallback);
    groups.push_back(make_group(name, make_sequence(std::exchange(group, {}))));
  };
  for (const Value& item : sorted(budget, std::move(items), false)) {
    const Value next = without_case(budget, getter(item, fallback), case_sensitive);
    if (!key || !equal(budget, *key, next)) {
      end_group();
      key = next;
    }
    group.push_back(item);
  }
  end_group();
  return make_sequence(std::move(groups));
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
    return safe_like(value, Value(std::move(text)));
  }
  const bool generator = value.is(Kind::kSequence) && value.as_sequence().flavor == Sequence::kGenerator;
  return make_sequence(std::move(items), generator ? Sequence::kList : Sequence::kGenerator);
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
      budget.spend(2 * Budget::kItem);
      pairs.push_back(make_sequence({key, item}, Sequence::kTuple));
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

Value slice(Budget& budget, const Value& value, Arguments& arguments) {
  constexpr int64_t kMost = 100'000;
  const Value* given = arguments.find(0, "slices");
  require(given, "slice takes the number of slices");
  const int64_t slices = arguments.integer(0, "slices", 0);
  const Value* fill = arguments.find(1, "fill_with");
  require(slices != 0 && slices <= kMost, "slice into {}; 1 to {} are expected", slices, kMost);
  const auto items = items_of(budget, value);
  std::vector<Value> result;
  auto at = items.begin();
  for (int64_t i = 0; i < slices; ++i) {
    budget.spend(Budget::kItem);
    const bool longer = i < int64_t(items.size()) % slices;
    const auto end = at + int64_t(items.size()) / slices + (longer ? 1 : 0);
    std::vector<Value> part(at, end);
    if (fill && !fill->is(Kind::kNone) && !longer) part.push_back(*fill);
    result.push_back(make_sequence(std::move(part)));
    at = end;
  }
  return make_sequence(std::move(result), Sequence::kGenerator);
}

}  // namespace

const FilterTable& list_filters() {
  static const FilterTable all = {
      {"batch", batch}, {"dictsort", dictsort}, {"groupby", groupby}, {"items", items}, {"join", join},
      {"list", list},   {"reverse", reverse},   {"slice", slice},     {"sort", sort},   {"sum", sum}};
  return all;
}

}  // namespace heddle::jinja
