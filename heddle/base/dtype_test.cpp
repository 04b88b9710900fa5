#include "heddle/base/dtype.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/float8.h"

namespace heddle {
namespace {

TEST(DType, NamesAreUnique) {
  std::set<std::string> names, safetensors, numpy;
  for (const DTypeInfo& info : kDTypes) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(safetensors.insert(info.safetensors).second) << info.name;
    EXPECT_TRUE(numpy.insert(info.numpy).second) << info.name;
    EXPECT_EQ(std::string(name(info.type)), info.name);
  }
  EXPECT_STREQ(name(DType(200)), "?");
}

TEST(DType, Sizes) {
  for (const DTypeInfo& info : kDTypes)
    EXPECT_EQ(size_of(info.type), std::max(1, info.bits / 8)) << info.name;
  EXPECT_EQ(bytes_of(DType::kI4, 7), 4);
  EXPECT_EQ(bytes_of(DType::kF16, 7), 14);
  EXPECT_EQ(bytes_of(DType::kI64, 1ll << 33), 1ll << 36);
}

TEST(DType, Kinds) {
  EXPECT_TRUE(is_float(DType::kF8E5M2));
  EXPECT_FALSE(is_wide_float(DType::kF8E5M2));
  EXPECT_TRUE(is_wide_float(DType::kBf16));
  EXPECT_TRUE(is_integer(DType::kI4));
  EXPECT_FALSE(is_integer(DType::kBool) || is_float(DType::kBool) || is_wide_float(DType::kI64));
}

TEST(Element, KeepsTwoI4InAByte) {
  std::byte bytes[3] = {};
  for (int i = 0; i < 6; ++i) store_number(DType::kI4, bytes, i, i - 4);
  EXPECT_EQ(bytes[0], std::byte{0xdc}) << "the even element has the low bits";
  for (int i = 0; i < 6; ++i) EXPECT_EQ(load_number(DType::kI4, bytes, i), i - 4);
  store_number(DType::kI4, bytes, 3, 7);
  EXPECT_EQ(load_number(DType::kI4, bytes, 2), -2) << "the other half of the byte stays";
}

TEST(Element, KeepsNumbersOfEveryType) {
  for (const DTypeInfo& info : kDTypes) {
    std::byte bytes[8];
    if (info.type == DType::kI4) {
      EXPECT_THROW(store_number(info.type, bytes, 1), Error);
      EXPECT_THROW((void)load_number(info.type, bytes), Error);
      continue;
    }
    const bool is_signed = info.kind == DTypeKind::kFloat || info.name[0] == 'i';
    for (double value : {0.0, 1.0, 96.0, -3.0}) {
      if ((value < 0 && !is_signed) || (value > 1 && info.type == DType::kBool)) continue;
      store_number(info.type, bytes, value);
      EXPECT_EQ(load_number(info.type, bytes), value) << info.name;
    }
    if (!is_float(info.type)) continue;
    const double last = std::ldexp(1.0, -info.mantissa);  // place of 1
    store_number(info.type, bytes, 1 + last);
    EXPECT_EQ(load_number(info.type, bytes), 1 + last) << info.name;
    EXPECT_EQ(round_to(info.type, float(1 + last / 2)), 1.0f) << info.name << ": a half goes to even";
  }
}

// Describes an fp8: a sign, `mantissa` bits of mantissa, and exponent bits for the rest.
struct Format {
  const char* name;
  int mantissa, bias;
  bool infinities;  // as in IEEE: an exponent of all ones means infinity or NaN
  float (*decode)(uint8_t);
  uint8_t (*encode)(float);

  double value(int code) const {
    const int exponent = (code & 0x7f) >> mantissa, fraction = code & ((1 << mantissa) - 1);
    const double sign = code & 0x80 ? -1 : 1;
    if (infinities && exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (!infinities && (code & 0x7f) == 0x7f) return NAN;
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
    return sign * std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
  }
  int largest() const { return infinities ? 0x7b : 0x7e; }
};

const Format kFormats[] = {{"e4m3", 3, 7, false, f8e4m3_to_float, float_to_f8e4m3},
                           {"e5m2", 2, 15, true, f8e5m2_to_float, float_to_f8e5m2}};

TEST(Float8, DecodesEveryCode) {
  for (const Format& format : kFormats)
    for (int code = 0; code < 256; ++code) {
      const float value = format.decode(uint8_t(code));
      if (std::isnan(format.value(code))) {
        EXPECT_TRUE(std::isnan(value)) << format.name << " " << code;
        EXPECT_TRUE(std::isnan(format.decode(format.encode(value))));
        continue;
      }
      EXPECT_EQ(double(value), format.value(code)) << format.name << " " << code;
      EXPECT_EQ(std::signbit(value), code >= 0x80) << format.name << " " << code;
      EXPECT_EQ(format.encode(value), code) << format.name;
    }
}

TEST(Float8, RoundsHalvesToEven) {
  for (const Format& format : kFormats)
    for (int code = 0; code < format.largest(); ++code) {
      const float low = float(format.value(code)), high = float(format.value(code + 1)),
                  half = (low + high) / 2;
      const int even = code % 2 == 0 ? code : code + 1;
      for (int sign : {0, 0x80}) {
        const float s = sign ? -1.0f : 1.0f;
        EXPECT_EQ(format.encode(s * half), sign | even) << format.name << " " << code;
        EXPECT_EQ(format.encode(s * std::nextafter(half, low)), sign | code) << format.name;
        EXPECT_EQ(format.encode(s * std::nextafter(half, high)), sign | (code + 1)) << format.name;
      }
    }
}

TEST(Float8, EndsOfTheRange) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (float large : {448.0f, 464.0f, 480.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(float_to_f8e4m3(large), 0x7e) << large;
    EXPECT_EQ(float_to_f8e4m3(-large), 0xfe) << large;
  }
  EXPECT_EQ(float_to_f8e5m2(61439.0f), 0x7b);
  EXPECT_EQ(float_to_f8e5m2(61440.0f), 0x7c);
  EXPECT_EQ(float_to_f8e5m2(-kInfinity), 0xfc);
  for (const Format& format : kFormats) {
    EXPECT_EQ(format.encode(std::numeric_limits<float>::denorm_min()), 0) << format.name;
    EXPECT_TRUE(std::isnan(format.decode(format.encode(NAN)))) << format.name;
  }
}

}  // namespace
}  // namespace heddle
