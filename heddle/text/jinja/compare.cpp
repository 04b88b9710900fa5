// Compares values: ==, < and in.
#include <algorithm>
#include <compare>

#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/jinja/value.h"

namespace heddle::jinja {
namespace {

// The views of keys and items are sets, and those of values are equal only to themselves.
bool equal_views(Budget& budget, const Sequence& a, const Sequence& b) {
  if (a.flavor == Sequence::kValues || a.items.size() != b.items.size()) return false;
  for (const Value& item : a.items) {
    budget.spend(Budget::kItem * b.items.size());
    if (std::ranges::none_of(b.items, [&](const Value& other) { return equal(budget, item, other); }))
      return false;
  }
  return true;
}

bool equal_items(Budget& budget, const Sequence& a, const Sequence& b) {
  if (a.is_view() && b.is_view()) return equal_views(budget, a, b);
  if (a.flavor != b.flavor || a.items.size() != b.items.size() || a.flavor == Sequence::kGenerator)
    return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(budget, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = b.find(budget, key);
    if (!other || !equal(budget, value, *other)) return false;
  }
  return true;
}

}  // namespace

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) return std::is_eq(compare_numbers(a, b));
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kString:
      return a.as_string() == b.as_string();
    case Kind::kCycler:
      return &a.as_cycler() == &b.as_cycler();
    case Kind::kSequence:
      return &a.as_sequence() == &b.as_sequence() || equal_items(budget, a.as_sequence(), b.as_sequence());
    case Kind::kDict:
      return equal_dicts(budget, a.as_dict(), b.as_dict());
    case Kind::kNamespace:
      return &a.as_namespace() == &b.as_namespace();
    case Kind::kCallable:
      return &a.as_callable() == &b.as_callable();
    case Kind::kLoop:
      return &a.as_loop() == &b.as_loop();
    default:
      return true;
  }
}

std::optional<int> compare(Budget& budget, const Value& a, const Value& b, std::string_view operation) {
  budget.spend(1);
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) {
    const auto order = compare_numbers(a, b);
    if (order == std::partial_ordering::unordered) return std::nullopt;
    return std::is_lt(order) ? -1 : std::is_gt(order) ? 1 : 0;
  }
  if (a.is(Kind::kString) && b.is(Kind::kString)) return a.as_string().compare(b.as_string());
  const bool sequences = a.is(Kind::kSequence) && b.is(Kind::kSequence) &&
                         a.as_sequence().flavor == b.as_sequence().flavor && a.as_sequence().is_list();
  require(sequences, "'{}' of {} and {}: they have no order", operation, describe(a), describe(b));
  const auto &left = a.as_sequence().items, &right = b.as_sequence().items;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (!equal(budget, left[i], right[i])) return compare(budget, left[i], right[i], operation);
  }
  return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      require(item.is(Kind::kString), "'in' asks for {} in a string; a string is expected", describe(item));
      budget.spend(container.as_string().size());
      return find_text(container.as_string(), item.as_string()) != std::string_view::npos;
    case Kind::kDict:
      return container.as_dict().find(budget, item) != nullptr;
    default:
      for (const Value& other : items_of(budget, container)) {
        if (equal(budget, other, item)) return true;
      }
      return false;
  }
}

}  // namespace heddle::jinja
