// Filters that make numbers, and those that write them.
#include <cctype>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "heddle/text/jinja/character_class.h"
#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/operators.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

bool is_letter_or_digit(char c) {
  return std::isalnum(uint8_t(c)) != 0;
}

// Digits with single underscores between them, as in Python's numbers; empty if the text is not like that.
std::string without_underscores(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between =
        i > 0 && i + 1 < text.size() && is_letter_or_digit(text[i - 1]) && is_letter_or_digit(text[i + 1]);
    if (text[i] == '_' && !between) return {};
    if (uint8_t(text[i]) >= 0xC0 && is_decimal(first_char(text.substr(i)).code_point))
      fail(ErrorCode::kUnsupported, "digits beyond ASCII in a number are not supported");
    if (text[i] != '_') digits += text[i];
  }
  return digits;
}

std::optional<double> parse_float(std::string_view text) {
  const std::string number = without_underscores(strip(text, Sides::kBoth));
  const size_t sign = !number.empty() && (number[0] == '+' || number[0] == '-');
  const std::string name = lower(std::string_view(number).substr(sign));
  const bool special = name == "inf" || name == "infinity" || name == "nan";
  if (name.empty() || (!special && name.find_first_not_of("0123456789.e+-") != std::string::npos))
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  return end == number.c_str() + number.size() ? std::optional(value) : std::nullopt;
}

// Removes the prefix of a base, and gives the base that base 0 stands for.
int64_t take_prefix(std::string& digits, int64_t base) {
  const char letter = digits.size() > 1 && digits[0] == '0' ? char(digits[1] | 0x20) : ' ';
  const int64_t named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (named == 0 || (base != 0 && base != named)) return base == 0 ? 10 : base;
  digits.erase(0, 2);
  return named;
}

// int(text, base)
std::optional<Value> parse_int(std::string_view text, int64_t base) {
  std::string digits = without_underscores(strip(text, Sides::kBoth));
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const int64_t used = take_prefix(digits, base);
  if (digits.empty()) return std::nullopt;
  const bool leading_zero =
      digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos;
  if (base == 0 && used == 10 && leading_zero) return std::nullopt;
  Wide number = 0;
  bool overflow = false;
  for (const char c : digits) {
    const int64_t digit = !is_letter_or_digit(c) ? used : c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (digit >= used) return std::nullopt;
    overflow = overflow || __builtin_mul_overflow(number, Wide(used), &number) ||
               __builtin_add_overflow(number, Wide(digit), &number);
  }
  if (used == 10) return integer_from_digits(digits.insert(0, negative ? "-" : ""));
  require_room(!overflow, "the number {} has no 128 bits' room", text);
  return integer_from(negative ? -number : number);
}

Value int_filter(Budget& budget, const Value& value, Arguments& arguments) {
  const Value* fallback = arguments.find(0, "default");
  const int64_t base = arguments.integer(1, "base", 10);
  Value otherwise = fallback ? *fallback : Value(int64_t{0});
  require_defined(value);
  if (value.is_whole()) return integer_from_digits(digits_of(value));
  if (value.is(Kind::kFloat))
    return std::isnan(value.as_float()) ? otherwise : integer_from(value.as_float());
  if (!value.is(Kind::kString)) return otherwise;
  budget.spend(value.as_string().size());
  // Python refuses other bases, and Jinja then takes the text for a float.
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (const auto whole = parse_int(value.as_string(), base)) return *whole;
  }
  const auto number = parse_float(value.as_string());
  return number && std::isfinite(*number) ? integer_from(*number) : otherwise;
}

Value float_filter(Budget&, const Value& value, Arguments& arguments) {
  const Value* fallback = arguments.find(0, "default");
  Value otherwise = fallback ? *fallback : Value(0.0);
  require_defined(value);
  if (value.is_number()) return Value(value.as_float());
  const auto number = value.is(Kind::kString) ? parse_float(value.as_string()) : std::nullopt;
  return number ? Value(*number) : otherwise;
}

Value abs_filter(Budget&, const Value& value, Arguments&) {
  require_defined(value);
  require(value.is_number(), "abs of {}; a number is expected", describe(value));
  if (value.is(Kind::kFloat)) return Value(std::abs(value.as_float()));
  return is_negative(value) ? negated(value) : integer_from_digits(digits_of(value));
}

// Rounds a whole number, and a part of one after it, to a multiple of a power of ten; ties to even.
std::string round_to_tens(std::string digits, bool and_more, size_t zeros) {
  const bool negative = digits[0] == '-';
  if (negative) digits.erase(0, 1);
  if (digits.size() < zeros) return "0";
  digits.insert(0, 1, '0');
  const size_t at = digits.size() - zeros;
  const std::string rest = digits.substr(at);
  const bool half = rest[0] == '5' && rest.find_first_not_of('0', 1) == std::string::npos && !and_more;
  const bool up = half ? (digits[at - 1] - '0') % 2 == 1 : rest[0] >= '5';
  for (size_t i = at; up && i > 0; --i) {
    digits[i - 1] = digits[i - 1] == '9' ? '0' : char(digits[i - 1] + 1);
    if (digits[i - 1] != '0') break;
  }
  std::string rounded(negative ? "-" : "");
  return rounded.append(digits, 0, at).append(zeros, '0');
}

Value round_common(const Value& value, int64_t precision) {
  constexpr int64_t kMostDigits = 323;  // as in Python: a float has no more
  if (value.is_whole() && precision >= 0) return integer_from_digits(digits_of(value));
  if (value.is_whole()) {
    const std::string digits = digits_of(value);
    return integer_from_digits(round_to_tens(digits, false, size_t(std::min<int64_t>(-precision, 5000))));
  }
  const double number = value.as_float();
  if (!std::isfinite(number) || precision > kMostDigits) return value;
  double rounded = 0;
  if (precision >= 0) {
    // Rounds to the nearest of the digits, ties to even, as printing does.
    rounded = std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr);
  } else {
    const std::string digits = fmt::format("{:.0f}", std::abs(std::trunc(number)));
    const bool more = std::trunc(number) != number;
    rounded = std::strtod(round_to_tens(digits, more, size_t(std::min<int64_t>(-precision, 5000))).c_str(),
                          nullptr);
  }
  require(std::isfinite(rounded), "{} rounded to {} digits is beyond floats", number, precision);
  return Value(std::copysign(rounded, number));
}

Value round_filter(Budget& budget, const Value& value, Arguments& arguments) {
  constexpr int64_t kMost = 22;  // powers of ten that a float holds
  const int64_t precision = arguments.integer(0, "precision", 0);
  const Value* given = arguments.find(1, "method");
  const std::string method = given ? to_text(budget, *given) : "common";
  require_defined(value);
  require(value.is_number(), "round of {}; a number is expected", describe(value));
  require(method == "common" || method == "ceil" || method == "floor",
          "round with the method '{}'; common, ceil or floor are expected", method);
  if (method == "common") return round_common(value, precision);
  if (precision < -kMost || precision > kMost)
    fail(ErrorCode::kUnsupported, "{} to {} digits is not supported; {} are the most", method, precision,
         kMost);
  const double scale = std::pow(10.0, double(precision)), number = value.as_float();
  require(std::isfinite(number * scale), "{} of {}", method, number);
  const double scaled = number * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale + 0.0);
}

Value file_size(Budget&, const Value& value, Arguments& arguments) {
  const bool binary = arguments.truth(0, "binary", false);
  require_defined(value);
  const std::optional<double> text = value.is(Kind::kString) ? parse_float(value.as_string()) : std::nullopt;
  require(text.has_value() || value.is_number(), "filesizeformat of {}; a number is expected",
          describe(value));
  const double bytes = value.is_number() ? value.as_float() : text.value_or(0), base = binary ? 1024 : 1000;
  if (bytes == 1) return Value("1 Byte");
  if (bytes < base) return Value(digits_of(integer_from(bytes)) + " Bytes");
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  size_t i = 0;
  do {
    unit *= base;
  } while (bytes >= unit && ++i < kPrefixes.size());
  const char prefix = kPrefixes[std::min(i, kPrefixes.size() - 1)];
  const std::string name =
      binary ? std::string(1, char(std::toupper(prefix))) + "iB" : std::string(1, prefix) + "B";
  return Value(fmt::format("{:.1f} {}", base * bytes / unit, name));
}

}  // namespace

const FilterTable& number_filters() {
  static const FilterTable all = {{"abs", abs_filter},
                                  {"filesizeformat", file_size},
                                  {"float", float_filter},
                                  {"int", int_filter},
                                  {"round", round_filter}};
  return all;
}

}  // namespace heddle::jinja
