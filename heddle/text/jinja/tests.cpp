#include "heddle/text/jinja/tests.h"

#include <map>

#include <fmt/format.h>

#include "heddle/text/jinja/filters.h"
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

bool is_iterable(Budget&, const Value& value, Arguments&) {
  return value.is(Kind::kSequence) || value.is(Kind::kString) || value.is(Kind::kDict) ||
         value.is(Kind::kUndefined) || value.is(Kind::kLoop);
}

bool is_sequence(Budget&, const Value& value, Arguments&) {
  if (value.is(Kind::kSequence)) {
    const Sequence::Flavor flavor = value.as_sequence().flavor;
    return flavor != Sequence::kView && flavor != Sequence::kGenerator;
  }
  // In Jinja an undefined value passes too: it has a length.
  return value.is(Kind::kString) || value.is(Kind::kDict) || value.is(Kind::kUndefined);
}

bool is_callable(Budget&, const Value& value, Arguments&) {
  return value.is(Kind::kCallable) || value.is(Kind::kUndefined);
}

int64_t remainder(const Value& value, int64_t divisor) {
  require_defined(value);
  require(value.is_integer() && divisor != 0, "{} divided by {}: whole numbers but 0 are expected",
          describe(value), divisor);
  return divisor == -1 ? 0 : value.as_int() % divisor;
}

bool is_odd(Budget&, const Value& value, Arguments&) {
  return remainder(value, 2) != 0;
}
bool is_even(Budget&, const Value& value, Arguments&) {
  return remainder(value, 2) == 0;
}
bool is_divisible(Budget&, const Value& value, Arguments& arguments) {
  const Value& divisor = arguments.at(0, "num");
  require(divisor.is_integer(), "divisibleby {}; a whole number is expected", describe(divisor));
  return remainder(value, divisor.as_int()) == 0;
}

bool has_case(std::string_view text, std::string (*to_case)(std::string_view),
              std::string (*other)(std::string_view)) {
  return to_case(text) == text && other(text) != text;
}
bool is_lower(Budget& budget, const Value& value, Arguments&) {
  return has_case(to_text(budget, value), lower, upper);
}
bool is_upper(Budget& budget, const Value& value, Arguments&) {
  return has_case(to_text(budget, value), upper, lower);
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

// Compares singletons only: whether other values are the same object in Python depends on how they were made.
bool is_same(Budget& budget, const Value& value, Arguments& arguments) {
  const Value& other = arguments.at(0, "other");
  const auto singleton = [](const Value& v) { return v.is(Kind::kNone) || v.is(Kind::kBool); };
  if (!singleton(other)) {
    fail(ErrorCode::kUnsupported, "'sameas' with {} is not supported; true, false and none are",
         describe(other));
  }
  return value.kind() == other.kind() && equal(budget, value, other);
}

bool is_filter_name(Budget& budget, const Value& value, Arguments&) {
  const std::string name = to_text(budget, value);
  if (!is_filter(name)) fail(ErrorCode::kUnsupported, "whether there is a filter '{}' is not known", name);
  return true;
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
      {"integer", is_kind<Kind::kInt>},
      {"iterable", is_iterable},
      {"le", is_ordered<-1, 0>},
      {"<=", is_ordered<-1, 0>},
      {"lessthan", is_ordered<-1, -1>},
      {"lt", is_ordered<-1, -1>},
      {"<", is_ordered<-1, -1>},
      {"lower", is_lower},
      {"mapping", is_kind<Kind::kDict>},
      {"ne", is_unequal},
      {"!=", is_unequal},
      {"none", is_kind<Kind::kNone>},
      {"number", is_number},
      {"odd", is_odd},
      {"sameas", is_same},
      {"sequence", is_sequence},
      {"string", is_kind<Kind::kString>},
      {"true", is_bool<true>},
      {"undefined", is_kind<Kind::kUndefined>},
      {"upper", is_upper},
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
  if (found == tests().end()) fail(ErrorCode::kUnsupported, "the test '{}' is not supported", name);
  const bool result = found->second(budget, value, arguments);
  arguments.finish();
  return result;
}

}  // namespace heddle::jinja
