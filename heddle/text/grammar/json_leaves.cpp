#include "heddle/text/grammar/json_leaves.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/json_view.h"
#include "heddle/text/grammar/ecma_pattern.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

// Floats tell decimals of so many digits apart.
constexpr int kMostDigits = 15, kMostIntegerDigits = 19;
constexpr std::string_view kHex = "0123456789abcdefABCDEF";

ByteDfa make_any_string() {
  DfaBuilder made;
  const auto add = [&] { return made.add(); };
  const u32 text = add(), done = add();
  const u32 last = add(), two = add(), three = add(), e0 = add(), ed = add(), f0 = add(), f4 = add();
  made.set(ByteDfa::kStart, '"', '"', text), made.accept(done);
  made.set(text, 0x20, 0x7F, text), made.set(text, '"', '"', done);
  made.set(text, 0xC2, 0xDF, last), made.set(text, 0xE0, 0xEF, two), made.set(text, 0xF0, 0xF3, three);
  made.set(text, 0xE0, 0xE0, e0), made.set(text, 0xED, 0xED, ed), made.set(text, 0xF0, 0xF0, f0);
  made.set(text, 0xF4, 0xF4, f4);
  made.set(last, 0x80, 0xBF, text), made.set(two, 0x80, 0xBF, last), made.set(three, 0x80, 0xBF, two);
  made.set(e0, 0xA0, 0xBF, last), made.set(ed, 0x80, 0x9F, last);
  made.set(f0, 0x90, 0xBF, two), made.set(f4, 0x80, 0x8F, two);

  const u32 escape = add(), u4 = add(), u3 = add(), u2 = add(), u1 = add();  // so many digits are to come
  made.set(text, '\\', '\\', escape), made.set_each(escape, "\"\\/bfnrt", text);
  made.set(escape, 'u', 'u', u4), made.set_each(u4, kHex, u3), made.set_each(u3, kHex, u2);
  made.set_each(u2, kHex, u1), made.set_each(u1, kHex, text);
  const u32 d = add(), high2 = add(), high1 = add(), pair = add(), pair_u = add(), low4 = add(), low3 = add();
  made.set_each(u4, "dD", d), made.set_each(d, "01234567", u2), made.set_each(d, "89abAB", high2);
  made.set_each(high2, kHex, high1), made.set_each(high1, kHex, pair), made.set(pair, '\\', '\\', pair_u);
  made.set(pair_u, 'u', 'u', low4), made.set_each(low4, "dD", low3), made.set_each(low3, "cdefCDEF", u2);
  return made.build();
}

// A number without its sign.
struct Magnitude {
  std::string whole, fraction;  // no zeros before the first, and after the second
};

Magnitude magnitude(std::string_view digits) {
  if (digits.starts_with('-')) digits.remove_prefix(1);
  const size_t point = std::min(digits.find('.'), digits.size());
  Magnitude made{.whole = std::string(digits.substr(0, point)), .fraction = {}};
  if (point < digits.size()) made.fraction = digits.substr(point + 1);
  made.fraction.erase(made.fraction.find_last_not_of('0') + 1);
  return made;
}

bool is_zero(std::string_view digits) {
  return digits.find_first_not_of("-0.") == std::string_view::npos;
}

// The patterns that magnitudes match which are larger (or smaller) than a bound, or equal to it unless `open`.
class Comparison {
 public:
  Comparison(const Magnitude& bound, bool integer, bool larger, bool open)
      : bound_(bound), larger_(larger), open_(open), rest_(integer ? "" : "([.][0-9]+)?") {
    const std::string& whole = bound_.whole;
    const size_t size = whole.size();
    if (larger)
      add(fmt::format("[1-9][0-9]{{{},}}{}", size, rest_));
    else if (size > 1)
      add(fmt::format("(0|[1-9][0-9]{{0,{}}}){}", size - 2, rest_));
    for (size_t i = 0; i < size; ++i)
      if (const std::string digit = beyond(whole[i], i == 0 && size > 1); !digit.empty())
        add(fmt::format("{}{}[0-9]{{{}}}{}", whole.substr(0, i), digit, size - i - 1, rest_));
    integer ? add_equal_whole() : add_fractions();
  }
  const std::string& pattern() const { return pattern_; }

 private:
  void add(const std::string& one) { pattern_ += (pattern_.empty() ? "" : "|") + one; }
  // A class of the digits beyond this one; "" where there is none.
  std::string beyond(char digit, bool not_zero) const {
    const char low = larger_ ? char(digit + 1) : not_zero ? '1' : '0';
    const char high = larger_ ? '9' : char(digit - 1);
    return low > high ? "" : fmt::format("[{}-{}]", low, high);
  }
  void add_equal_whole() {
    const bool fits = bound_.fraction.empty() ? !open_ : !larger_;
    if (fits) add(bound_.whole);
  }
  void add_fractions() {
    const std::string& fraction = bound_.fraction;
    const std::string begin = bound_.whole + "[.]";
    for (size_t i = 0; i < fraction.size(); ++i) {
      if (const std::string digit = beyond(fraction[i], false); !digit.empty())
        add(fmt::format("{}{}{}[0-9]*", begin, fraction.substr(0, i), digit));
      // A shorter fraction is smaller.
      if (!larger_) add(i == 0 ? bound_.whole : begin + fraction.substr(0, i));
    }
    if (!larger_ && !fraction.empty() && !open_) add(begin + fraction + "0*");
    if (!larger_ && fraction.empty() && !open_) add(bound_.whole + "([.]0+)?");
    if (!larger_) return;
    if (open_)
      add(begin + fraction + "[0-9]*[1-9][0-9]*");
    else
      add(fraction.empty() ? bound_.whole + rest_ : begin + fraction + "[0-9]*");
  }

  const Magnitude bound_;
  const bool larger_, open_;
  const std::string rest_;
  std::string pattern_;
};

ByteDfa plain(const std::string& pattern) {
  return dfa_of_pattern(pattern, Spelling::kPlain);
}

// Numbers beyond a bound, with their sign.
ByteDfa beyond(const NumberBound& bound, bool integer, bool larger) {
  const bool negative = bound.digits.starts_with('-') && !is_zero(bound.digits);
  const std::string any = integer ? "(0|[1-9][0-9]*)" : "(0|[1-9][0-9]*)([.][0-9]+)?";
  const Magnitude of = magnitude(bound.digits);
  // Below zero, a larger number has a smaller magnitude.
  const std::string near = Comparison(of, integer, larger != negative, bound.open).pattern();
  if (negative) return plain(larger ? fmt::format("{}|-({})", any, near) : fmt::format("-({})", near));
  if (larger) return plain(near);
  if (near.empty())
    return plain(fmt::format("-({})", Comparison(of, integer, true, true).pattern()));  // -0 is not below 0
  return plain(fmt::format("{}|-{}", near, any));
}

}  // namespace

const ByteDfa& any_string() {
  static const ByteDfa made = make_any_string();
  return made;
}

std::string decimal_digits(const Json& value) {
  std::string text = value.is_integer() ? value.integer_digits() : fmt::format("{:.17f}", value.as_number());
  if (!value.is_integer()) {
    std::string shortest = fmt::format("{}", value.as_number());
    if (shortest.find('e') == std::string::npos) text = shortest;
    if (text.find('.') != std::string::npos) {
      text.erase(text.find_last_not_of('0') + 1);
      if (text.ends_with('.')) text.pop_back();
    }
    double again = 0;
    std::from_chars(text.data(), text.data() + text.size(), again);
    require(again == value.as_number(), "{} has no short form in decimals", shortest);
  }
  const auto digits = std::ranges::count_if(text, [](char c) { return c >= '0' && c <= '9'; });
  const int most = value.is_integer() ? kMostIntegerDigits : kMostDigits;
  require(digits <= most, "{} has {} digits; a bound has at most {}", text, digits, most);
  return text;
}

ByteDfa numbers(bool integer, const std::optional<NumberBound>& least,
                const std::optional<NumberBound>& most) {
  if (!least && !most) {
    static const ByteDfa integers = plain("-?(0|[1-9][0-9]{0,29})"),
                         all = plain("-?(0|[1-9][0-9]{0,29})([.][0-9]{1,30})?([eE][+-]?[0-9]{1,2})?");
    return integer ? integers : all;
  }
  ByteDfa made = plain(fmt::format("-?[0-9]{{1,{}}}", kMostIntegerDigits));
  if (!integer)
    made = ByteDfa::both(plain(fmt::format("-?[0-9.]{{1,{}}}", kMostDigits + 1)),
                         plain(fmt::format("-?([0-9]{{1,{}}}|[0-9]+[.][0-9]+)", kMostDigits)));
  if (least) made = ByteDfa::both(made, beyond(*least, integer, true));
  if (most) made = ByteDfa::both(made, beyond(*most, integer, false));
  return made;
}

std::string json_text(const Json& value) {
  if (value.is_string()) {
    std::string made = "\"";
    for (std::string_view rest = value.as_string(); !rest.empty();) {
      const Utf8Char c = first_char(rest);
      made += json_spelling(c.code_point);
      rest.remove_prefix(c.size);
    }
    return made + "\"";
  }
  std::string made;
  const auto comma = [&] { return made.size() > 1 ? "," : ""; };
  if (value.is_array()) {
    made = "[";
    for (const Json& item : value.items()) made += comma() + json_text(item);
    return made + "]";
  }
  if (!value.is_object()) return value.dump();
  made = "{";
  for (const JsonMember& member : value.members())
    made += comma() + json_text(member.name) + ":" + json_text(member.value);
  return made + "}";
}

ByteDfa key_but(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(json_text(name));
  static const ByteDfa any = dfa_of_pattern("", Spelling::kJsonString);
  return ByteDfa::without(any, dfa_of_texts(texts));
}

}  // namespace heddle
