#include "heddle/text/jinja/percent_format.h"

#include <algorithm>
#include <cmath>

#include "heddle/text/jinja/format_spec.h"
#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

struct Conversion {
  bool left = false, plus = false, space = false, alternate = false, zero = false;
  int64_t width = 0, precision = -1;
  char type = 0;
};

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, const Value& format, const Value& values)
      : budget_(budget), format_(format), rest_(format.as_string()), values_(values) {
    is_tuple_ = values.is(Kind::kSequence) && values.as_sequence().flavor == Sequence::kTuple;
    // For Python, whatever has items by key may be the values by name, and need not be used.
    const bool has_items = values.is(Kind::kSequence) && !values.as_sequence().is_view() &&
                           values.as_sequence().flavor != Sequence::kGenerator;
    may_be_left_ = !is_tuple_ && (values.is(Kind::kDict) || values.is(Kind::kUndefined) || has_items);
  }

  Value run() {
    std::string out;
    while (!rest_.empty()) {
      const size_t at = std::min(rest_.find('%'), rest_.size());
      out += rest_.substr(0, at);
      rest_.remove_prefix(at);
      if (rest_.empty()) break;
      rest_.remove_prefix(1);
      const std::string made = conversion();
      budget_.spend(Budget::kItem + made.size());
      out += made;
    }
    const size_t count = is_tuple_ ? values_.as_sequence().items.size() : 1;
    require(may_be_left_ || used_ >= count, "'%' with {} values, of which {} are used", count, used_);
    return safe_like(format_, Value(std::move(out)));
  }

 private:
  const Value& next() {
    const size_t count = is_tuple_ ? values_.as_sequence().items.size() : 1;
    require(used_ < count, "'%' with {} values, which are not enough", count);
    ++used_;
    return is_tuple_ ? values_.as_sequence().items[used_ - 1] : values_;
  }
  char take() {
    require(!rest_.empty(), "'%' of a format that ends inside of a conversion");
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  bool skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  Value named();
  int64_t number();
  std::string conversion();
  std::string convert(const Conversion& how, const Value& value);
  std::string text_of(char type, const Value& value);
  static std::string digits_for(const Conversion& how, const Value& value);
  static std::string character(const Value& value);

  Budget& budget_;
  const Value& format_;
  std::string_view rest_;
  const Value& values_;
  bool is_tuple_ = false, may_be_left_ = false;
  size_t used_ = 0;
};

// The value of %(name).
Value PercentFormatter::named() {
  require(values_.is(Kind::kDict), "'%' with a name takes a dict, not {}", describe(values_));
  size_t depth = 1, end = 0;
  for (; end < rest_.size(); ++end) {
    depth += rest_[end] == '(' ? 1 : 0;
    depth -= rest_[end] == ')' ? 1 : 0;
    if (depth == 0) break;
  }
  require(depth == 0, "'%' of a format with a name that has no end");
  const std::string_view name = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  const Value* found = values_.as_dict().find(name);
  require(found, "'%' with a dict that has no '{}'", name);
  used_ = 1;
  return *found;
}

int64_t PercentFormatter::number() {
  if (skip('*')) {
    const Value& value = next();
    require(value.is_integer(), "'%' with * takes a whole number, not {}", describe(value));
    checked_width(budget_, std::abs(value.as_int()));
    return value.as_int();
  }
  int64_t value = 0;
  while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9')
    value = checked_width(budget_, value * 10 + (take() - '0'));
  return value;
}

std::string PercentFormatter::conversion() {
  Conversion how;
  std::optional<Value> value;
  if (skip('(')) value = named();
  for (bool flag = true; flag;) {
    flag = false;
    for (const auto& [symbol, set] :
         {std::pair{'-', &how.left}, std::pair{'+', &how.plus}, std::pair{' ', &how.space},
          std::pair{'#', &how.alternate}, std::pair{'0', &how.zero}}) {
      if (!skip(symbol)) continue;
      *set = flag = true;
    }
  }
  how.width = number();
  if (how.width < 0) {
    how.left = true;
    how.width = -how.width;
  }
  if (skip('.')) how.precision = std::max<int64_t>(number(), 0);
  if (!skip('h') && !skip('l')) skip('L');
  how.type = take();
  if (how.type == '%') return "%";
  const Value used = value ? *value : next();
  return convert(how, used);
}

std::string PercentFormatter::text_of(char type, const Value& value) {
  std::string text = type == 's' ? to_text(budget_, value) : to_repr(budget_, value);
  if (type == 'a') text = to_ascii(text);
  return format_.is_safe() && !(type == 's' && value.is_safe()) ? escape_html(text) : text;
}

std::string PercentFormatter::character(const Value& value) {
  if (value.is(Kind::kString)) {
    require(count_characters(value.as_string()) == 1, "'%c' takes one character");
    return value.as_string();
  }
  const bool valid = value.is_integer() && value.as_int() >= 0 && value.as_int() <= 0x10FFFF &&
                     (value.as_int() < 0xD800 || value.as_int() > 0xDFFF);
  require(valid, "'%c' of {}; a character or its number is expected", describe(value));
  std::string text;
  append_utf8(uint32_t(value.as_int()), text);
  return text;
}

// The number without its sign; with a prefix that # asks for.
std::string PercentFormatter::digits_for(const Conversion& how, const Value& value) {
  const bool floating = std::string_view("eEfFgG").find(how.type) != std::string_view::npos;
  if (floating) {
    return float_digits(std::abs(value.as_float()), how.type, how.precision < 0 ? 6 : how.precision,
                        how.alternate);
  }
  const bool decimal = how.type == 'd' || how.type == 'i' || how.type == 'u';
  require(decimal || value.is_whole(), "'%{}' of {}; a whole number is expected", how.type, describe(value));
  const Value whole = value.is(Kind::kFloat) ? integer_from(value.as_float()) : value;
  std::string digits = decimal
                           ? digits_of(whole)
                           : digits_of(require_wide(whole, "%"), how.type == 'o' ? 8 : 16, how.type == 'X');
  if (digits[0] == '-') digits.erase(0, 1);
  if (how.precision > int64_t(digits.size())) digits.insert(0, size_t(how.precision) - digits.size(), '0');
  return digits;
}

std::string PercentFormatter::convert(const Conversion& how, const Value& value) {
  Field field{.align = how.left ? '<' : '>', .width = how.width};
  const char type = how.type;
  if (type == 'c') return pad(character(value), field);
  if (type == 's' || type == 'r' || type == 'a') {
    const std::string text = text_of(type, value);
    if (how.precision < 0) return pad(text, field);
    const auto all = characters(text);
    std::string kept;
    for (size_t i = 0; i < all.size() && int64_t(i) < how.precision; ++i) kept += all[i];
    return pad(kept, field);
  }
  require(std::string_view("diuoxXeEfFgG").find(type) != std::string_view::npos,
          "'%{}' is no conversion of Python", type);
  require(value.is_number(), "'%{}' of {}; a number is expected", type, describe(value));
  const std::string digits = digits_for(how, value);
  const bool negative = value.is(Kind::kFloat)
                            ? std::signbit(value.as_float()) && !std::isnan(value.as_float())
                            : is_negative(value);
  // A fraction below one leaves no sign of a whole number.
  const bool sign =
      negative && !(value.is(Kind::kFloat) && std::string_view("diu").find(type) != std::string_view::npos &&
                    digits.find_first_not_of('0') == std::string::npos);
  std::string lead = sign ? "-" : how.plus ? "+" : how.space ? " " : "";
  if (how.alternate && (type == 'o' || type == 'x' || type == 'X')) lead += std::string("0") + type;
  if (how.zero && !how.left) {
    return lead + pad(digits, {.fill = "0", .align = '>', .width = how.width - int64_t(lead.size())});
  }
  return pad(lead + digits, field);
}

}  // namespace

Value percent_format(Budget& budget, const Value& format, const Value& values) {
  return PercentFormatter(budget, format, values).run();
}

}  // namespace heddle::jinja
