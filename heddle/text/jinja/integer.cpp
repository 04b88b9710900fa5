#include "heddle/text/jinja/integer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace heddle::jinja {
namespace {

std::strong_ordering compare_digits(std::string_view a, std::string_view b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-'))
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  const auto order = a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
  return negative ? 0 <=> order : order;
}

// The number has no fraction.
std::string digits_of_whole(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  return digits == "-0" ? "0" : digits;
}

}  // namespace

Value integer_from_digits(std::string_view text) {
  constexpr size_t kMostDigits = 4300;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  require(text.size() <= kMostDigits, "a whole number of {} digits; Python reads {}", text.size(),
          kMostDigits);
  std::string digits(negative && !text.empty() ? "-" : "");
  digits += text.empty() ? "0" : text;
  int64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return read.ec == std::errc() ? Value(number) : Value::big(digits);
}

Value integer_from(Wide number) {
  if (number >= INT64_MIN && number <= INT64_MAX) return Value(int64_t(number));
  return Value::big(digits_of(number));
}

Value integer_from(double number) {
  require(std::isfinite(number), "{} has no whole number", number);
  return integer_from_digits(digits_of_whole(std::trunc(number)));
}

std::string digits_of(const Value& value) {
  return value.is(Kind::kBigInt) ? value.as_digits() : std::to_string(value.as_int());
}

std::optional<Wide> wide_of(const Value& value) {
  if (!value.is(Kind::kBigInt)) return Wide(value.as_int());
  Wide number = 0;
  const bool negative = is_negative(value);
  for (const char digit : std::string_view(value.as_digits()).substr(negative ? 1 : 0)) {
    if (__builtin_mul_overflow(number, Wide(10), &number)) return std::nullopt;
    const Wide more = digit - '0';
    if (negative ? __builtin_sub_overflow(number, more, &number)
                 : __builtin_add_overflow(number, more, &number))
      return std::nullopt;
  }
  return number;
}

Wide require_wide(const Value& value, std::string_view operation) {
  const auto number = wide_of(value);
  if (!number) {
    fail(ErrorCode::kUnsupported, "'{}' of {}, a whole number beyond 128 bits, is not supported", operation,
         value.as_digits());
  }
  return *number;
}

bool is_negative(const Value& value) {
  return value.is(Kind::kBigInt) ? value.as_digits().starts_with('-') : value.as_int() < 0;
}

// Compares whole numbers as such, because a double cannot hold all of them.
std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return compare_digits(digits_of(a), digits_of(b));
  if (!a.is_whole() && !b.is_whole()) return a.as_float() <=> b.as_float();
  if (a.is_whole()) return 0 <=> compare_numbers(b, a);
  const double number = a.as_float();
  if (!std::isfinite(number)) return number <=> 0.0;
  const double floor = std::floor(number);
  const auto order = compare_digits(digits_of_whole(floor), digits_of(b));
  return std::is_eq(order) && number > floor ? std::partial_ordering::greater : std::partial_ordering(order);
}

std::string digits_of(Wide number, unsigned base, bool upper) {
  const char* const symbols =
      upper ? "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" : "0123456789abcdefghijklmnopqrstuvwxyz";
  const bool negative = number < 0;
  std::string digits;
  do {
    const int digit = int(number % Wide(base));
    digits += symbols[digit < 0 ? -digit : digit];
    number /= Wide(base);
  } while (number != 0);
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

}  // namespace heddle::jinja
