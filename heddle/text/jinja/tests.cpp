#include "heddle/text/jinja/tests.h"

#include <map>

#include <fmt/format.h>

#include "heddle/text/jinja/filters.h"
#include "heddle/text/jinja/operators.h"
#include "heddle/text/jinja/python_text.h"

namespace heddle::jinja {
namespace {

using Test = bool (*)(Budget&, const Value&, Arguments&);

template <Kind kKind>
bool is_kind(Budget&, const Value& value, Arguments&) {
  return value.is(kKind);
}

template <bool kWanted>
bool is_bool(Budget&, const Value& value, Arguments&) {
  return value.is(Kind::kBool) && value.as_bool() == kWanted;
}

bool is_defined(Budget&, const Value& value, Arguments&) {
  return !value.is(Kind::kUndefined);
}

bool is_number(Budget&, const Value& value, Arguments&) {
  return value.is_number();
}

bool is_whole(Budget&, const Value& value, Arguments&) {
  return value.is_whole() && !value.is(Kind::kBool);
}

bool is_iterable(Budget&, const Value& value, Arguments&) {
  return value.is(Kind::kSequence) || value.is(Kind::kString) || value.is(Kind::kDict) ||
         value.is(Kind::kUndefined) || value.is(Kind::kLoop);
}

bool is_sequence(Budget&, const Value& value, Arguments&) {
  if (value.is(Kind::kSequence))
    return value.as_sequence().is_list() || value.as_sequence().flavor == Sequence::kRange;
  // In Jinja an undefined value passes too: it has a length.
  return value.is(Kind::kString) || value.is(Kind::kDict) || value.is(Kind::kUndefined);
}

bool is_callable(Budget&, const Value& value, Arguments&) {
  return value.is(Kind::kCallable) || value.is(Kind::kUndefined) || value.is(Kind::kLoop) ||
         (value.is(Kind::kCycler) && value.as_cycler().is_joiner);
}

bool is_escaped(Budget&, const Value& value, Arguments&) {
  return value.is_safe();
}

bool leaves(Budget& budget, const Value& value, const Value& divisor, int64_t rest) {
  return equal(budget, apply_binary(budget, "%", value, divisor), Value(rest));
}

bool is_odd(Budget& budget, const Value& value, Arguments&) {
  return leaves(budget, value, Value(int64_t{2}), 1);
}
bool is_even(Budget& budget, const Value& value, Arguments&) {
  return leaves(budget, value, Value(int64_t{2}), 0);
}
bool is_divisible(Budget& budget, const Value& value, Arguments& arguments) {
  return leaves(budget, value, arguments.at(0, "num"), 0);
}

template <bool kUpper>
bool has_case(Budget& budget, const Value& value, Arguments&) {
  const std::string text = to_text(budget, value);
  budget.spend(Budget::kItem * text.size());
  return has_only_case(text, kUpper);
}

bool is_in(Budget& budget, const Value& value, Arguments& arguments) {
  return contains(budget, arguments.at(0, "seq"), value);
}
bool is_equal(Budget& budget, const Value& value, Arguments& arguments) {
  return equal(budget, value, arguments.at(0, "other"));
}
bool is_unequal(Budget& budget, const Value& value, Arguments& arguments) {
  return !equal(budget, value, arguments.at(0, "other"));
}

// Compares singletons and containers: whether numbers and texts are the same object in Python depends on how
// they were made.
bool is_same(Budget& budget, const Value& value, Arguments& arguments) {
  const Value& other = arguments.at(0, "other");
  if (value.kind() != other.kind()) return false;
  if (other.is(Kind::kSequence)) return &value.as_sequence() == &other.as_sequence();
  if (other.is(Kind::kDict)) return &value.as_dict() == &other.as_dict();
  const bool unknown = other.is_number() || other.is(Kind::kString);
  if (unknown && !other.is(Kind::kBool) && equal(budget, value, other)) {
    fail(ErrorCode::kUnsupported,
         "'sameas' with {} of the same value is not supported; true, false, none and containers are",
         describe(other));
  }
  return !other.is(Kind::kUndefined) && equal(budget, value, other);
}

bool is_filter_name(Budget& budget, const Value& value, Arguments&) {
  require_hashable(value);
  return is_filter(to_text(budget, value));
}
bool is_test_name(Budget& budget, const Value& value, Arguments&) {
  require_hashable(value);
  return is_test(to_text(budget, value));
}

template <int kLow, int kHigh>
bool is_ordered(Budget& budget, const Value& value, Arguments& arguments) {
  const auto order = compare(budget, value, arguments.at(0, "other"), "a comparison");
  const int sign = !order ? 2 : *order < 0 ? -1 : *order > 0 ? 1 : 0;
  return sign >= kLow && sign <= kHigh;
}

const std::map<std::string_view, Test>& tests() {
  static const std::map<std::string_view, Test> all = {
      {"boolean", is_kind<Kind::kBool>},
      {"callable", is_callable},
      {"defined", is_defined},
      {"divisibleby", is_divisible},
      {"eq", is_equal},
      {"equalto", is_equal},
      {"==", is_equal},
      {"escaped", is_escaped},
      {"even", is_even},
      {"false", is_bool<false>},
      {"filter", is_filter_name},
      {"float", is_kind<Kind::kFloat>},
      {"ge", is_ordered<0, 1>},
      {">=", is_ordered<0, 1>},
      {"greaterthan", is_ordered<1, 1>},
      {"gt", is_ordered<1, 1>},
      {">", is_ordered<1, 1>},
      {"in", is_in},
      {"integer", is_whole},
      {"iterable", is_iterable},
      {"le", is_ordered<-1, 0>},
      {"<=", is_ordered<-1, 0>},
      {"lessthan", is_ordered<-1, -1>},
      {"lt", is_ordered<-1, -1>},
      {"<", is_ordered<-1, -1>},
      {"lower", has_case<false>},
      {"mapping", is_kind<Kind::kDict>},
      {"ne", is_unequal},
      {"!=", is_unequal},
      {"none", is_kind<Kind::kNone>},
      {"number", is_number},
      {"odd", is_odd},
      {"sameas", is_same},
      {"sequence", is_sequence},
      {"string", is_kind<Kind::kString>},
      {"test", is_test_name},
      {"true", is_bool<true>},
      {"undefined", is_kind<Kind::kUndefined>},
      {"upper", has_case<true>},
  };
  return all;
}

}  // namespace

bool is_test(std::string_view name) {
  return tests().contains(name);
}

std::string test_names() {
  std::string names;
  for (const auto& [name, unused] : tests()) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

bool apply_test(Budget& budget, std::string_view name, const Value& value, Arguments& arguments) {
  const auto found = tests().find(name);
  if (found == tests().end())
    fail(ErrorCode::kUnsupported, "the test '{}' is not known; known are {}", name, test_names());
  const bool result = found->second(budget, value, arguments);
  arguments.finish();
  return result;
}

}  // namespace heddle::jinja
