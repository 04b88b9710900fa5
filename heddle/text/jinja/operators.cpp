#include "heddle/text/jinja/operators.h"

#include <cmath>
#include <optional>

#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/percent_format.h"

namespace heddle::jinja {
namespace {

using Whole = std::optional<Wide>;

// Python rounds quotients down, and a remainder has the sign of the divisor.
Wide floor_divide(Wide a, Wide b) {
  return b == -1 ? -a : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

Wide floor_modulo(Wide a, Wide b) {
  if (b == -1) return 0;
  const Wide rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Whole power(Wide base, Wide exponent) {
  Wide result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
  return result;
}

// The operations on two whole numbers that give a whole number.
Whole whole_result(std::string_view operation, Wide a, Wide b) {
  constexpr Wide kLeast = Wide(1) << 127;
  Wide result = 0;
  bool overflow = false;
  if (operation == "//") return a == kLeast && b == -1 ? std::nullopt : Whole(floor_divide(a, b));
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
  require_room(!std::isnan(result) || std::isnan(a) || std::isnan(b), "{} ** {} is no real number", a, b);
  require(!std::isinf(result) || std::isinf(a) || std::isinf(b), "{} ** {} is out of range", a, b);
  return result;
}

// A quotient of whole numbers that a double holds is rounded once.
double quotient(const Value& a, const Value& b) {
  constexpr Wide kExact = Wide(1) << 53;
  for (const Value* number : {&a, &b}) {
    const Wide wide = require_wide(*number, "/");
    require_room(wide <= kExact && wide >= -kExact,
                 "'/' of {}, a whole number beyond 53 bits, is not supported", digits_of(*number));
  }
  return a.as_float() / b.as_float();
}

Value numbers(std::string_view operation, const Value& a, const Value& b) {
  const bool divides = operation == "/" || operation == "//" || operation == "%";
  const bool whole = a.is_whole() && b.is_whole();
  require(!divides || truth(b), "a division by 0");
  require(operation != "**" || truth(a) || b.as_float() >= 0, "0 to the power of a negative number");
  if (whole && operation == "/") return Value(quotient(a, b));
  if (!whole || (operation == "**" && is_negative(b)))
    return Value(float_result(operation, a.as_float(), b.as_float()));
  const Whole result = whole_result(operation, require_wide(a, operation), require_wide(b, operation));
  require_room(result.has_value(), "{} {} {} has no 128 bits' room", digits_of(a), operation, digits_of(b));
  return integer_from(*result);
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
    return safe_like(value, Value(std::move(text)));
  }
  std::vector<Value> items;
  const Sequence& sequence = value.as_sequence();
  for (uint64_t i = 0; i < count && size > 0; ++i) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return make_sequence(std::move(items), sequence.flavor);
}

bool is_list_or_tuple(const Value& value) {
  return value.is(Kind::kSequence) && value.as_sequence().is_list();
}

Value join_texts(Budget& budget, const Value& a, const Value& b) {
  const bool safe = a.is_safe() || b.is_safe();
  const Value left = safe ? escaped(budget, a) : a, right = safe ? escaped(budget, b) : b;
  budget.spend(left.as_string().size() + right.as_string().size());
  return safe_like(left, Value(left.as_string() + right.as_string()));
}

}  // namespace

Value apply_binary(Budget& budget, std::string_view operation, const Value& a, const Value& b) {
  require_defined(a);
  if (operation == "%" && a.is(Kind::kString)) return percent_format(budget, a, b);
  require_defined(b);
  if (a.is_number() && b.is_number()) return numbers(operation, a, b);
  if (operation == "+" && a.is(Kind::kString) && b.is(Kind::kString)) return join_texts(budget, a, b);
  if (operation == "+" && is_list_or_tuple(a) && is_list_or_tuple(b) &&
      a.as_sequence().flavor == b.as_sequence().flavor) {
    std::vector<Value> items = items_of(budget, a);
    const std::vector<Value> more = items_of(budget, b);
    items.insert(items.end(), more.begin(), more.end());
    return make_sequence(std::move(items), a.as_sequence().flavor);
  }
  if (operation == "*") {
    if (b.is_integer() && (a.is(Kind::kString) || is_list_or_tuple(a))) return repeat(budget, a, b.as_int());
    if (a.is_integer() && (b.is(Kind::kString) || is_list_or_tuple(b))) return repeat(budget, b, a.as_int());
  }
  fail(ErrorCode::kInvalidArgument, "'{}' does not take {} and {}", operation, describe(a), describe(b));
}

Value negated(const Value& value) {
  std::string digits = digits_of(value);
  if (is_negative(value)) {
    digits.erase(0, 1);
  } else {
    digits.insert(0, 1, '-');
  }
  return integer_from_digits(digits);
}

Value apply_sign(std::string_view sign, const Value& value) {
  require_defined(value);
  require(value.is_number(), "'{}' of {}; a number is expected", sign, describe(value));
  if (value.is(Kind::kFloat)) return Value(sign == "-" ? -value.as_float() : value.as_float());
  return sign == "-" ? negated(value) : integer_from_digits(digits_of(value));
}

}  // namespace heddle::jinja
