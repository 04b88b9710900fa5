#include "heddle/text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <compare>

#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

constexpr int kMaxDepth = 100;

void nest(Nesting& nesting, const Value& value) {
  Nesting inner;
  if (value.is(Kind::kSequence)) inner = value.as_sequence().nesting;
  if (value.is(Kind::kDict)) inner = value.as_dict().nesting;
  if (value.is(Kind::kNamespace) || value.is(Kind::kCallable) || value.is(Kind::kLoop))
    inner.holds_reference = true;
  nesting.depth = std::max(nesting.depth, inner.depth + 1);
  nesting.holds_reference |= inner.holds_reference;
  require(nesting.depth <= kMaxDepth, "values are {} levels deep; {} are the most", nesting.depth, kMaxDepth);
}

const Value* find_in(const std::vector<std::pair<std::string, Value>>& items, std::string_view key) {
  const auto found =
      std::ranges::find(items, key, [](const auto& item) { return std::string_view(item.first); });
  return found == items.end() ? nullptr : &found->second;
}

bool equal_items(Budget& budget, const Sequence& a, const Sequence& b) {
  if (a.flavor != b.flavor || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(budget, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    budget.spend(Budget::kItem * b.items.size());
    const Value* other = b.find(key);
    if (!other || !equal(budget, value, *other)) return false;
  }
  return true;
}

// Compares whole numbers as such, because a double cannot hold all of them.
std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.as_int() <=> b.as_int();
  if (!a.is_integer() && !b.is_integer()) return a.as_float() <=> b.as_float();
  constexpr double kLimit = 0x1p63;
  const bool swapped = a.is_integer();
  const double number = swapped ? b.as_float() : a.as_float();
  const int64_t whole = swapped ? a.as_int() : b.as_int();
  std::partial_ordering order = number <=> 0.0;  // if the number is beyond all whole ones
  if (number >= -kLimit && number < kLimit) {
    const double floor = std::floor(number);
    order = int64_t(floor) <=> whole;
    if (std::is_eq(order) && number > floor) order = std::partial_ordering::greater;
  }
  if (!swapped || order == std::partial_ordering::unordered) return order;
  return std::is_lt(order)   ? std::partial_ordering::greater
         : std::is_gt(order) ? std::partial_ordering::less
                             : std::partial_ordering::equivalent;
}

std::string repr_of_sequence(Budget& budget, const Sequence& sequence) {
  if (sequence.flavor > Sequence::kTuple) {
    fail(ErrorCode::kUnsupported,
         "a view, a range or a generator cannot be written as text; put `| list` behind it");
  }
  const bool tuple = sequence.flavor == Sequence::kTuple;
  std::string text = tuple ? "(" : "[";
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) text += ", ";
    text += to_repr(budget, sequence.items[i]);
  }
  if (tuple && sequence.items.size() == 1) text += ',';
  return text + (tuple ? ")" : "]");
}

std::string repr_of_dict(Budget& budget, const Dict& dict) {
  std::string text = "{";
  for (const auto& [key, value] : dict.items) {
    if (text.size() > 1) text += ", ";
    text += repr(key) + ": " + to_repr(budget, value);
  }
  return text + "}";
}

}  // namespace

Value Value::marked_safe() const {
  Value safe = *this;
  std::get<Text>(safe.data_).safe = true;
  return safe;
}

const Value* Dict::find(std::string_view key) const {
  return find_in(items, key);
}

const Value* Namespace::find(std::string_view key) const {
  return find_in(items, key);
}

void Namespace::set(std::string_view key, const Value& value) {
  require(!key.starts_with('_'), "a namespace takes no attribute '{}'; it must not begin with _", key);
  Nesting nesting;
  nest(nesting, value);
  if (nesting.holds_reference) {
    fail(ErrorCode::kUnsupported, "{} in the namespace attribute '{}' is not supported", describe(value),
         key);
  }
  set_item(items, key, value);
}

Value make_sequence(std::vector<Value> items, Sequence::Flavor flavor) {
  auto sequence = std::make_shared<Sequence>();
  for (const Value& item : items) nest(sequence->nesting, item);
  sequence->flavor = flavor;
  sequence->items = std::move(items);
  return Value(std::shared_ptr<const Sequence>(std::move(sequence)));
}

Value make_dict(std::vector<std::pair<std::string, Value>> items) {
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : items) nest(dict->nesting, value);
  dict->items = std::move(items);
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

void set_item(std::vector<std::pair<std::string, Value>>& items, std::string_view key, const Value& value) {
  const auto found =
      std::ranges::find(items, key, [](const auto& item) { return std::string_view(item.first); });
  if (found == items.end()) {
    items.emplace_back(key, value);
  } else {
    found->second = value;
  }
}

std::string describe(const Value& value) {
  static constexpr const char* kNames[] = {"an undefined value", "none",       "a boolean", "a whole number",
                                           "a number",           "a string",   "a list",    "a dict",
                                           "a namespace",        "a function", "a loop"};
  if (value.is(Kind::kSequence)) {
    static constexpr const char* kFlavors[] = {"a list", "a tuple", "a view", "a range", "a generator"};
    return kFlavors[value.as_sequence().flavor];
  }
  return kNames[size_t(value.kind())];
}

void require_defined(const Value& value) {
  if (value.is(Kind::kUndefined)) fail(ErrorCode::kInvalidArgument, "{}", value.why_undefined());
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.as_bool();
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_float() != 0;
    case Kind::kString:
      return !value.as_string().empty();
    case Kind::kSequence:
      return value.as_sequence().flavor == Sequence::kGenerator || !value.as_sequence().items.empty();
    case Kind::kDict:
      return !value.as_dict().items.empty();
    default:
      return true;
  }
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) return std::is_eq(compare_numbers(a, b));
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kString:
      return a.as_string() == b.as_string();
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
                         a.as_sequence().flavor == b.as_sequence().flavor &&
                         a.as_sequence().flavor <= Sequence::kTuple;
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
      budget.spend(Budget::kItem * container.as_dict().items.size());
      return item.is(Kind::kString) && container.as_dict().find(item.as_string());
    default:
      for (const Value& other : items_of(budget, container)) {
        if (equal(budget, other, item)) return true;
      }
      return false;
  }
}

std::vector<Value> items_of(Budget& budget, const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kString:
      for (std::string_view character : characters(value.as_string())) {
        budget.spend(Budget::kItem);
        items.emplace_back(character);
      }
      break;
    case Kind::kSequence: {
      const Sequence& sequence = value.as_sequence();
      budget.spend(Budget::kItem * sequence.items.size());
      if (!sequence.used_up) items = sequence.items;
      sequence.used_up = sequence.flavor == Sequence::kGenerator;
      break;
    }
    case Kind::kDict:
      for (const auto& [key, unused] : value.as_dict().items) {
        budget.spend(Budget::kItem + key.size());
        items.emplace_back(key);
      }
      break;
    default:
      fail(ErrorCode::kInvalidArgument, "{} has no items; a list, a dict or a string is expected",
           describe(value));
  }
  return items;
}

std::string to_text(Budget& budget, const Value& value) {
  if (value.is(Kind::kString)) {
    budget.spend(value.as_string().size());
    return value.as_string();
  }
  return value.is(Kind::kUndefined) ? std::string() : to_repr(budget, value);
}

std::string to_repr(Budget& budget, const Value& value) {
  budget.spend(Budget::kItem);
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.as_bool() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.as_int());
    case Kind::kFloat:
      return repr(value.as_float());
    case Kind::kString:
      if (value.is_safe()) fail(ErrorCode::kUnsupported, "a text behind 'safe' inside of a list or dict");
      budget.spend(value.as_string().size());
      return repr(value.as_string());
    case Kind::kSequence:
      return repr_of_sequence(budget, value.as_sequence());
    case Kind::kDict:
      return repr_of_dict(budget, value.as_dict());
    default:
      fail(ErrorCode::kUnsupported, "{} cannot be written as text", describe(value));
  }
}

}  // namespace heddle::jinja
