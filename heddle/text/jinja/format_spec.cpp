#include "heddle/text/jinja/format_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

struct Spec {
  std::string fill;
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, zero = false;
  int64_t width = -1, precision = -1;
  char grouping = 0, type = 0;
};

constexpr std::string_view kAligns = "<>=^";

bool is_one_of(char c, std::string_view all) {
  return c != 0 && all.find(c) != std::string_view::npos;
}

class SpecReader {
 public:
  SpecReader(Budget& budget, std::string_view text) : budget_(budget), all_(text), rest_(text) {}

  Spec run() {
    Spec spec;
    const size_t first = rest_.empty() ? 0 : first_char(rest_).size;
    if (rest_.size() > first && is_one_of(rest_[first], kAligns)) {
      spec.fill = rest_.substr(0, first);
      rest_.remove_prefix(first);
    }
    if (at(kAligns)) spec.align = take();
    if (at("+- ")) spec.sign = take();
    if (at("z")) fail(ErrorCode::kUnsupported, "the format '{}' with z is not supported", all_);
    if (at("#")) spec.alternate = take();
    if (at("0")) spec.zero = take();
    spec.width = number();
    if (at(",_")) spec.grouping = take();
    if (at(".")) {
      take();
      spec.precision = number();
      require(spec.precision >= 0, "the format '{}' has no digits after its point", all_);
    }
    if (!rest_.empty()) spec.type = take();
    require(rest_.empty(), "the format '{}' is not one of Python's", all_);
    return spec;
  }

 private:
  bool at(std::string_view chars) const { return !rest_.empty() && is_one_of(rest_[0], chars); }
  char take() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  int64_t number() {
    if (!at("0123456789")) return -1;
    int64_t value = 0;
    while (at("0123456789")) value = checked_width(budget_, value * 10 + (take() - '0'));
    return value;
  }

  Budget& budget_;
  std::string_view all_, rest_;
};

std::string without_trailing_zeros(std::string text) {
  const size_t exponent = std::min(text.find('e'), text.size());
  size_t end = exponent;
  if (text.substr(0, exponent).find('.') == std::string::npos) return text;
  while (text[end - 1] == '0') --end;
  if (text[end - 1] == '.') --end;
  return text.erase(end, exponent - end);
}

// Python's general form of a float: it has a point or an exponent. It takes the exponent one digit earlier
// than g does.
std::string general_digits(double number, int64_t precision) {
  const int64_t digits = std::max<int64_t>(precision, 1);
  std::string scientific = float_digits(number, 'e', digits - 1, false);
  const size_t exponent = scientific.find('e');
  if (exponent == std::string::npos) return scientific;
  const int power = std::atoi(scientific.c_str() + exponent + 1);
  if (power == digits - 1) return without_trailing_zeros(scientific);
  std::string text = float_digits(number, 'g', digits, false);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Puts a separator between groups of `size` digits before the point or exponent. With `width`, zeros in front
// fill it.
std::string grouped(const std::string& digits, char separator, size_t size, int64_t width) {
  const size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string whole = digits.substr(0, end);
  const std::string rest = digits.substr(end);
  const auto length = [&](size_t count) {
    return int64_t(count + (separator && count > 0 ? (count - 1) / size : 0) + rest.size());
  };
  while (length(whole.size()) < width) whole.insert(0, 1, '0');
  if (!separator) return whole + rest;
  std::string result;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i > 0 && (whole.size() - i) % size == 0) result += separator;
    result += whole[i];
  }
  return result + rest;
}

// Puts sign, prefix and digits into the field.
std::string numeric_field(const Spec& spec, bool negative, const std::string& prefix,
                          const std::string& digits, size_t group) {
  const std::string lead = (negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign)) + prefix;
  const char align = spec.align ? spec.align : spec.zero ? '=' : '>';
  const std::string fill = !spec.fill.empty() ? spec.fill : spec.zero ? "0" : " ";
  const bool zeros = align == '=' && fill == "0";
  const std::string body =
      grouped(digits, spec.grouping, group, zeros ? spec.width - int64_t(lead.size()) : 0);
  if (align == '=')
    return lead + pad(body, {.fill = fill, .align = '>', .width = spec.width - int64_t(lead.size())});
  return pad(lead + body, {.fill = fill, .align = align, .width = spec.width});
}

std::string format_float(const Spec& spec, double number, std::string_view all) {
  require(spec.type == 0 || is_one_of(spec.type, "eEfFgGn%"), "the format '{}' is not one of a number", all);
  const double size = std::abs(spec.type == '%' ? number * 100 : number);
  std::string digits;
  if (spec.type == 0) {
    digits = spec.precision < 0 ? repr(size) : general_digits(size, spec.precision);
    if (spec.alternate)
      fail(ErrorCode::kUnsupported, "the format '{}' with # and no letter is not supported", all);
  } else {
    const char conversion = spec.type == '%' ? 'f' : spec.type == 'n' ? 'g' : spec.type;
    digits = float_digits(size, conversion, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
  }
  if (spec.type == '%') digits += '%';
  return numeric_field(spec, std::signbit(number) && !std::isnan(number), "", digits, 3);
}

std::string format_integer(Budget& budget, const Spec& spec, const Value& value, std::string_view all) {
  if (is_one_of(spec.type, "eEfFgG%")) return format_float(spec, value.as_float(), all);
  require(spec.type == 0 || is_one_of(spec.type, "bcdnoxX"), "the format '{}' is not one of a whole number",
          all);
  require(spec.precision < 0, "the format '{}' has a precision; a whole number takes none", all);
  if (spec.type == 'c') {
    require(value.is_integer() && value.as_int() >= 0 && value.as_int() <= 0x10FFFF &&
                (value.as_int() < 0xD800 || value.as_int() > 0xDFFF),
            "the format '{}' of {}: no character has this number", all, digits_of(value));
    std::string text;
    append_utf8(uint32_t(value.as_int()), text);
    return pad(text, {.fill = spec.fill.empty() ? " " : spec.fill,
                      .align = spec.align ? spec.align : '<',
                      .width = spec.width});
  }
  const unsigned base = spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : is_one_of(spec.type, "xX") ? 16 : 10;
  require(spec.grouping != ',' || base == 10, "the format '{}' has commas; only decimal numbers take them",
          all);
  std::string digits =
      base == 10 ? digits_of(value) : digits_of(require_wide(value, "format"), base, spec.type == 'X');
  if (digits[0] == '-') digits.erase(0, 1);
  budget.spend(digits.size());
  const std::string prefix = spec.alternate && base != 10 ? std::string("0") + spec.type : "";
  return numeric_field(spec, is_negative(value), prefix, digits, base == 10 ? 3 : 4);
}

std::string format_text(const Spec& spec, std::string_view text, std::string_view all) {
  require((spec.type == 0 || spec.type == 's') && spec.sign == '-' && !spec.alternate && !spec.grouping &&
              spec.align != '=',
          "the format '{}' is not one of a string", all);
  std::string kept(text);
  if (spec.precision >= 0) {
    const auto all_characters = characters(text);
    if (int64_t(all_characters.size()) > spec.precision) {
      kept.clear();
      for (int64_t i = 0; i < spec.precision; ++i) kept += all_characters[size_t(i)];
    }
  }
  const std::string fill = !spec.fill.empty() ? spec.fill : spec.zero ? "0" : " ";
  return pad(kept, {.fill = fill, .align = spec.align ? spec.align : '<', .width = spec.width});
}

}  // namespace

int64_t checked_width(Budget& budget, int64_t width) {
  constexpr int64_t kMost = 1'000'000;
  require_room(width <= kMost, "a width or precision of {}; {} are the most", width, kMost);
  budget.spend(uint64_t(std::max<int64_t>(width, 0)));
  return width;
}

std::string float_digits(double number, char conversion, int64_t precision, bool alternate) {
  const char format[] = {'%', '#', '.', '*', conversion, 0}, plain[] = {'%', '.', '*', conversion, 0};
  const char* const used = alternate ? format : plain;
  std::string text(size_t(precision) + 400, '\0');  // a double has at most 309 digits before its point
  text.resize(size_t(std::snprintf(text.data(), text.size(), used, int(precision), number)));
  return text;
}

std::string pad(std::string_view text, const Field& field) {
  const int64_t missing = std::max<int64_t>(field.width - int64_t(count_characters(text)), 0);
  const int64_t left = field.align == '<' ? 0 : field.align == '>' ? missing : missing / 2;
  std::string result;
  for (int64_t i = 0; i < left; ++i) result += field.fill;
  result += text;
  for (int64_t i = left; i < missing; ++i) result += field.fill;
  return result;
}

std::string to_ascii(std::string_view text) {
  std::string result;
  for (std::string_view character : characters(text)) {
    const uint32_t c = first_char(character).code_point;
    if (c < 0x80) {
      result += character;
    } else {
      result += c < 0x100     ? fmt::format("\\x{:02x}", c)
                : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                              : fmt::format("\\U{:08x}", c);
    }
  }
  return result;
}

std::string format_value(Budget& budget, const Value& value, std::string_view spec) {
  if (spec.empty()) return to_text(budget, value);
  const Spec read = SpecReader(budget, spec).run();
  if (value.is_whole()) return format_integer(budget, read, value, spec);
  if (value.is(Kind::kFloat)) return format_float(read, value.as_float(), spec);
  require(value.is(Kind::kString), "the format '{}' for {}; a string or number is expected", spec,
          describe(value));
  budget.spend(value.as_string().size());
  return format_text(read, value.as_string(), spec);
}

}  // namespace heddle::jinja
