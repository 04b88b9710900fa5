// Methods of numbers.
#include <bit>
#include <cmath>
#include <cstdio>

#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/method_tables.h"

namespace heddle::jinja {
namespace {

Value itself(Budget&, const Value& self, Arguments&) {
  return self.is(Kind::kFloat) ? self : integer_from_digits(digits_of(self));
}

template <bool kCount>
Value bits(Budget&, const Value& self, Arguments&) {
  const Wide number = require_wide(self, kCount ? "bit_count" : "bit_length");
  __extension__ using Unsigned = unsigned __int128;
  const Unsigned size = number < 0 ? -Unsigned(number) : Unsigned(number);
  const auto high = uint64_t(size >> 64), low = uint64_t(size);
  if (kCount) return Value(int64_t(std::popcount(high) + std::popcount(low)));
  return Value(int64_t(high ? 64 + std::bit_width(high) : std::bit_width(low)));
}

Value ratio(Budget& budget, const Value& self, Arguments& arguments) {
  if (!self.is(Kind::kFloat)) {
    return make_sequence({itself(budget, self, arguments), Value(int64_t{1})}, Sequence::kTuple);
  }
  const double number = self.as_float();
  require(std::isfinite(number), "{} is no ratio of whole numbers", number);
  int exponent = 0;
  constexpr int kBits = 53;
  auto top = Wide(std::ldexp(std::frexp(number, &exponent), kBits));
  int shift = exponent - kBits;  // number = top * 2 ** shift
  while (shift < 0 && top % 2 == 0 && top != 0) {
    top /= 2;
    ++shift;
  }
  if (top == 0) shift = 0;
  constexpr int kRoom = 126 - kBits;
  require_room(shift <= kRoom && shift > -126, "{} as a ratio has no 128 bits' room", number);
  const Wide numerator = shift > 0 ? top * (Wide(1) << shift) : top;
  return make_sequence({integer_from(numerator), integer_from(shift < 0 ? Wide(1) << -shift : Wide(1))},
                       Sequence::kTuple);
}

Value is_integer(Budget&, const Value& self, Arguments&) {
  const double number = self.as_float();
  return Value(std::isfinite(number) && std::trunc(number) == number);
}

Value hex(Budget&, const Value& self, Arguments&) {
  const double number = self.as_float();
  if (std::isnan(number)) return Value("nan");
  if (std::isinf(number)) return Value(number > 0 ? "inf" : "-inf");
  if (number == 0) return Value(std::signbit(number) ? "-0x0.0p+0" : "0x0.0p+0");
  char text[64];
  std::snprintf(text, sizeof(text), "%.13a", number);
  return Value(text);
}

}  // namespace

const MethodTable& integer_methods() {
  static const MethodTable all = {{"as_integer_ratio", ratio},
                                  {"bit_count", bits<true>},
                                  {"bit_length", bits<false>},
                                  {"conjugate", itself}};
  return all;
}

const MethodTable& float_methods() {
  static const MethodTable all = {
      {"as_integer_ratio", ratio}, {"conjugate", itself}, {"hex", hex}, {"is_integer", is_integer}};
  return all;
}

}  // namespace heddle::jinja
