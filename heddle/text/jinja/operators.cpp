#include "heddle/text/jinja/operators.h"

#include <cmath>
#include <optional>

namespace heddle::jinja {
namespace {

using Whole = std::optional<int64_t>;

// Python rounds quotients down, and a remainder has the sign of the divisor.
Whole floor_divide(int64_t a, int64_t b) {
  if (b == -1) return a == INT64_MIN ? std::nullopt : Whole(-a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Whole power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
  return result;
}

// The operations on two whole numbers that give a whole number.
Whole whole_result(std::string_view operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (operation == "//") return floor_divide(a, b);
  if (operation == "%") return floor_modulo(a, b);
  if (operation == "**") return power(a, b);
  if (operation == "+") overflow = __builtin_add_overflow(a, b, &result);
  if (operation == "-") overflow = __builtin_sub_overflow(a, b, &result);
  if (operation == "*") overflow = __builtin_mul_overflow(a, b, &result);
  return overflow ? std::nullopt : Whole(result);
}

double python_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double float_result(std::string_view operation, double a, double b) {
  if (operation == "+") return a + b;
  if (operation == "-") return a - b;
  if (operation == "*") return a * b;
  if (operation == "/") return a / b;
  if (operation == "%") return python_modulo(a, b);
  if (operation == "//") {
    // As in CPython: the quotient without the remainder, rounded to the nearest whole number.
    const double quotient = (a - python_modulo(a, b)) / b;
    const double floor = std::floor(quotient);
    return quotient == 0 ? std::copysign(0.0, a / b) : quotient - floor > 0.5 ? floor + 1 : floor;
  }
  const double result = std::pow(a, b);
  require(!std::isnan(result) || std::isnan(a) || std::isnan(b), "{} ** {} is no real number", a, b);
  require(!std::isinf(result) || std::isinf(a) || std::isinf(b), "{} ** {} is out of range", a, b);
  return result;
}

Value numbers(std::string_view operation, const Value& a, const Value& b) {
  const bool divides = operation == "/" || operation == "//" || operation == "%";
  require(!divides || b.as_float() != 0, "a division by 0");
  require(operation != "**" || a.as_float() != 0 || b.as_float() >= 0, "0 to the power of a negative number");
  const bool fraction = operation == "/" || (operation == "**" && b.is_integer() && b.as_int() < 0);
  if (!a.is_integer() || !b.is_integer() || fraction) {
    return Value(float_result(operation, a.as_float(), b.as_float()));
  }
  const Whole result = whole_result(operation, a.as_int(), b.as_int());
  require_room(result.has_value(), "{} {} {} has no 64 bits' room", a.as_int(), operation, b.as_int());
  return Value(*result);
}

Value repeat(Budget& budget, const Value& value, int64_t times) {
  const auto count = uint64_t(times > 0 ? times : 0);
  const uint64_t size = value.is(Kind::kString) ? value.as_string().size() : value.as_sequence().items.size();
  uint64_t cost = 0;
  const uint64_t unit = value.is(Kind::kString) ? 1 : Budget::kItem;
  const bool overflow = __builtin_mul_overflow(size * unit, count, &cost);
  budget.spend(overflow ? UINT64_MAX : cost);
  if (value.is(Kind::kString)) {
    std::string text;
    for (uint64_t i = 0; i < count && size > 0; ++i) text += value.as_string();
    return Value(std::move(text));
  }
  std::vector<Value> items;
  const Sequence& sequence = value.as_sequence();
  for (uint64_t i = 0; i < count && size > 0; ++i) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return make_sequence(std::move(items), sequence.flavor);
}

bool is_list(const Value& value) {
  return value.is(Kind::kSequence) && value.as_sequence().flavor <= Sequence::kTuple;
}

}  // namespace

Value apply_binary(Budget& budget, std::string_view operation, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) return numbers(operation, a, b);
  if (a.is_safe() || b.is_safe()) {
    fail(ErrorCode::kUnsupported, "'{}' with a text behind 'safe' is not supported; '~' is", operation);
  }
  if (operation == "+" && a.is(Kind::kString) && b.is(Kind::kString)) {
    budget.spend(a.as_string().size() + b.as_string().size());
    return Value(a.as_string() + b.as_string());
  }
  if (operation == "+" && is_list(a) && is_list(b) && a.as_sequence().flavor == b.as_sequence().flavor) {
    std::vector<Value> items = items_of(budget, a);
    const std::vector<Value> more = items_of(budget, b);
    items.insert(items.end(), more.begin(), more.end());
    return make_sequence(std::move(items), a.as_sequence().flavor);
  }
  if (operation == "*") {
    if (b.is_integer() && (a.is(Kind::kString) || is_list(a))) return repeat(budget, a, b.as_int());
    if (a.is_integer() && (b.is(Kind::kString) || is_list(b))) return repeat(budget, b, a.as_int());
  }
  const bool format = operation == "%" && a.is(Kind::kString);
  fail(format ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument, "'{}' of {} and {}{}", operation,
       describe(a), describe(b), format ? " is not supported; '~' joins texts" : ": they do not go together");
}

Value apply_sign(std::string_view sign, const Value& value) {
  require_defined(value);
  require(value.is_number(), "'{}' of {}; a number is expected", sign, describe(value));
  if (value.is(Kind::kFloat)) return Value(sign == "-" ? -value.as_float() : value.as_float());
  require(sign == "+" || value.as_int() != INT64_MIN, "the number {} has no opposite", value.as_int());
  return Value(sign == "-" ? -value.as_int() : value.as_int());
}

}  // namespace heddle::jinja
