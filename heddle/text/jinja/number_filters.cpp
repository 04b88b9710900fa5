// Filters that make numbers.
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "heddle/text/jinja/filter_tables.h"
#include "heddle/text/jinja/python_text.h"

namespace heddle::jinja {
namespace {

// Digits with single underscores between them, as in Python's numbers; empty if the text is not like that.
std::string without_underscores(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && std::isdigit(uint8_t(text[i - 1])) &&
                         std::isdigit(uint8_t(text[i + 1]));
    if (text[i] == '_' && !between) return {};
    if (uint8_t(text[i]) >= 0x80)
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

std::optional<int64_t> parse_int(std::string_view text) {
  const std::string number = without_underscores(strip(text, Sides::kBoth));
  const size_t sign = !number.empty() && (number[0] == '+' || number[0] == '-');
  if (number.size() == sign || number.find_first_not_of("0123456789", sign) != std::string::npos)
    return std::nullopt;
  errno = 0;
  const int64_t value = std::strtoll(number.c_str(), nullptr, 10);
  require_room(errno == 0, "the number {} has no 64 bits' room", number);
  return value;
}

int64_t to_int(double number) {
  constexpr double kLimit = 0x1p63;
  require_room(std::abs(number) < kLimit, "the number {} has no 64 bits' room", number);
  return int64_t(number);
}

Value int_filter(Budget&, const Value& value, Arguments& arguments) {
  const Value* fallback = arguments.find(0, "default");
  const int64_t base = arguments.integer(1, "base", 10);
  if (base != 10) fail(ErrorCode::kUnsupported, "int with base {} is not supported; 10 is", base);
  Value otherwise = fallback ? *fallback : Value(int64_t{0});
  require_defined(value);
  if (value.is_integer()) return Value(value.as_int());
  if (value.is(Kind::kFloat))
    return std::isnan(value.as_float()) ? otherwise : Value(to_int(value.as_float()));
  if (!value.is(Kind::kString)) return otherwise;
  if (const auto whole = parse_int(value.as_string())) return Value(*whole);
  const auto number = parse_float(value.as_string());
  return number && std::isfinite(*number) ? Value(to_int(*number)) : otherwise;
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
  require(value.is_number(), "abs of {}; a number is expected", describe(value));
  if (value.is(Kind::kFloat)) return Value(std::abs(value.as_float()));
  require_room(value.as_int() != INT64_MIN, "the number {} has no opposite", value.as_int());
  return Value(std::abs(value.as_int()));
}

Value round_filter(Budget& budget, const Value& value, Arguments& arguments) {
  constexpr int64_t kMost = 15;
  const int64_t precision = arguments.integer(0, "precision", 0);
  const Value* given = arguments.find(1, "method");
  const std::string method = given ? to_text(budget, *given) : "common";
  require(value.is_number(), "round of {}; a number is expected", describe(value));
  require(method == "common" || method == "ceil" || method == "floor",
          "round with the method '{}'; common, ceil or floor are expected", method);
  if (precision < 0 || precision > kMost) {
    fail(ErrorCode::kUnsupported, "round to {} digits is not supported; 0 to {} are", precision, kMost);
  }
  const double number = value.as_float();
  if (method == "common") {
    if (value.is_integer()) return Value(value.as_int());
    // Rounds to the nearest of the digits, ties to even, as printing does.
    return Value(std::isfinite(number)
                     ? std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr)
                     : number);
  }
  const double scale = std::pow(10.0, double(precision));
  require(std::isfinite(number), "round of {}", number);
  return Value((method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) / scale);
}

}  // namespace

const FilterTable& number_filters() {
  static const FilterTable all = {
      {"abs", abs_filter}, {"float", float_filter}, {"int", int_filter}, {"round", round_filter}};
  return all;
}

}  // namespace heddle::jinja
