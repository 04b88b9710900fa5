#include "heddle/text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

constexpr int kMaxDepth = 100;

void nest(Nesting& nesting, const Value& value) {
  Nesting inner;
  if (value.is(Kind::kSequence)) inner = value.as_sequence().nesting;
  if (value.is(Kind::kDict)) inner = value.as_dict().nesting;
  if (value.is(Kind::kNamespace) || value.is(Kind::kCallable) || value.is(Kind::kLoop) ||
      value.is(Kind::kCycler))
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

}  // namespace

double Value::as_float() const {
  if (is(Kind::kFloat)) return std::get<double>(data_);
  if (!is(Kind::kBigInt)) return double(as_int());
  const double number = std::strtod(as_digits().c_str(), nullptr);
  require(std::isfinite(number), "the whole number {} is too large for a float", as_digits());
  return number;
}

Value Value::marked_safe() const {
  Value safe = *this;
  std::get<Text>(safe.data_).safe = true;
  return safe;
}

const Value* Dict::find(std::string_view key) const {
  const auto same = [&](const auto& item) {
    return item.first.is(Kind::kString) && item.first.as_string() == key;
  };
  const auto found = std::ranges::find_if(items, same);
  return found == items.end() ? nullptr : &found->second;
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  budget.spend(Budget::kItem * items.size());
  if (key.is(Kind::kString)) return find(key.as_string());
  require_hashable(key);
  const auto found =
      std::ranges::find_if(items, [&](const auto& item) { return equal(budget, item.first, key); });
  return found == items.end() ? nullptr : &found->second;
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

Value make_range(const Sequence::Range& range, std::vector<Value> items) {
  auto sequence = std::make_shared<Sequence>();
  sequence->flavor = Sequence::kRange;
  sequence->nesting.depth = 1;
  sequence->range = range;
  sequence->items = std::move(items);
  return Value(std::shared_ptr<const Sequence>(std::move(sequence)));
}

Value make_group(const Value& grouper, const Value& list) {
  auto sequence = std::make_shared<Sequence>();
  sequence->flavor = Sequence::kTuple;
  sequence->items = {grouper, list};
  for (const Value& item : sequence->items) nest(sequence->nesting, item);
  sequence->is_group = true;
  return Value(std::shared_ptr<const Sequence>(std::move(sequence)));
}

Value make_dict(Dict::Items items) {
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : items) {
    nest(dict->nesting, key);
    nest(dict->nesting, value);
  }
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

void set_item(Budget& budget, Dict::Items& items, const Value& key, const Value& value) {
  budget.spend(items.size());
  require_hashable(key);
  const auto found =
      std::ranges::find_if(items, [&](const auto& item) { return equal(budget, item.first, key); });
  if (found == items.end()) {
    items.emplace_back(key, value);
  } else {
    found->second = value;
  }
}

std::string describe(const Value& value) {
  static constexpr const char* kNames[] = {
      "an undefined value", "none",     "a boolean", "a whole number", "a whole number beyond 64 bits",
      "a number",           "a string", "a list",    "a dict",         "a namespace",
      "a function",         "a loop",   "a cycler"};
  if (value.is(Kind::kSequence)) {
    static constexpr const char* kFlavors[] = {"a list", "a tuple", "a range",    "a view",
                                               "a view", "a view",  "a generator"};
    return kFlavors[value.as_sequence().flavor];
  }
  return kNames[size_t(value.kind())];
}

void require_defined(const Value& value) {
  if (value.is(Kind::kUndefined)) fail(ErrorCode::kInvalidArgument, "{}", value.why_undefined());
}

void require_hashable(const Value& value) {
  bool hashable = !value.is(Kind::kDict);
  if (value.is(Kind::kSequence)) {
    const Sequence& sequence = value.as_sequence();
    hashable = sequence.flavor == Sequence::kTuple || sequence.flavor == Sequence::kRange;
    if (sequence.flavor == Sequence::kTuple) std::ranges::for_each(sequence.items, require_hashable);
  }
  require(hashable, "{} cannot be a key: only values that cannot change can", describe(value));
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
        budget.spend(Budget::kItem);
        items.push_back(key);
      }
      break;
    case Kind::kLoop:
      fail(ErrorCode::kUnsupported, "the items of {} are not supported", describe(value));
    default:
      fail(ErrorCode::kInvalidArgument, "{} has no items; a list, a dict or a string is expected",
           describe(value));
  }
  return items;
}

}  // namespace heddle::jinja
