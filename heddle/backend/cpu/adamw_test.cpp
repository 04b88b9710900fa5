#include "heddle/backend/cpu/adamw.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/base/dynamic_code.h"
#include "heddle/base/float16.h"

namespace heddle {
namespace {

constexpr i64 kStepped = 2 * kDynamicBlock + 37;

// AdamwMemory of one kind, with room after them that nobody may write to.
struct AdamwMemory {
  std::vector<u8> param, residual, grad, m, v;
  std::vector<float> m_scale, v_scale;

  explicit AdamwMemory(const AdamwStep& step, u32 seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto numbers = [&](DType type, bool is_square) {
      std::vector<u8> bytes(size_t((kStepped + 64) * size_of(type)));
      for (i64 i = 0; i < kStepped + 64; ++i) {
        const float value = is_square ? std::abs(normal(random)) : normal(random);
        const u16 half = float_to_bf16(value);
        if (type == DType::kBf16)
          std::memcpy(&bytes[size_t(2 * i)], &half, 2);
        else
          std::memcpy(&bytes[size_t(4 * i)], &value, 4);
      }
      return bytes;
    };
    param = numbers(step.param, false), grad = numbers(step.grad, false);
    residual.resize(size_t(2 * (kStepped + 64)));
    for (u8& byte : residual) byte = u8(random());
    const DType state = step.state == AdamwState::kF32 ? DType::kF32 : DType::kBf16;
    m = numbers(state, false), v = numbers(state, true);
    if (step.state == AdamwState::kDynamic)
      for (auto* codes : {&m, &v})
        for (u8& byte : *codes) byte = u8(random());
    m_scale = {0.5f, 1e-20f, 3, 77}, v_scale = {0.25f, 0, 2, 77};
  }

  AdamwTensor run(u32 seed) {
    return {.param = param.data(),
            .residual = residual.data(),
            .grad = grad.data(),
            .m = m.data(),
            .v = v.data(),
            .m_scale = m_scale.data(),
            .v_scale = v_scale.data(),
            .first = 0,
            .count = kStepped,
            .seed = seed};
  }
  auto all() const { return std::tie(param, residual, grad, m, v, m_scale, v_scale); }
};

AdamwTensor part_of(AdamwTensor t, const AdamwStep& step, i64 begin, i64 end) {
  const i64 param = size_of(step.param), state = step.state == AdamwState::kF32    ? 4
                                                 : step.state == AdamwState::kBf16 ? 2
                                                                                   : 1;
  t.param += begin * param, t.residual += begin * 2, t.grad += begin * size_of(step.grad);
  t.m += begin * state, t.v += begin * state, t.first += begin, t.count = end - begin;
  t.m_scale += begin / kDynamicBlock, t.v_scale += begin / kDynamicBlock;
  return t;
}

std::vector<AdamwStep> adamw_kinds() {
  std::vector<AdamwStep> kinds;
  for (DType param : {DType::kF32, DType::kBf16})
    for (DType grad : {DType::kF32, DType::kBf16})
      for (AdamwState state : {AdamwState::kF32, AdamwState::kBf16, AdamwState::kDynamic})
        kinds.push_back({param, grad, state, 1e-2f, 0.9f, 0.999f, 1e-8f, 0.1f, 0.5f, 7});
  return kinds;
}

TEST(AdamwPass, AllLevelsAndCutsGiveTheSameBits) {
  for (const AdamwStep& step : adamw_kinds()) {
    AdamwMemory wanted(step, 1);
    const AdamwMemory before = wanted;
    adamw_step(std::vector{wanted.run(5)}, step, 1, simd_level("baseline"));
    EXPECT_NE(wanted.param, before.param);
    for (const SimdLevel& level : simd_levels()) {
      AdamwMemory made(step, 1);
      adamw_step(std::vector{made.run(5)}, step, 2, level);
      EXPECT_TRUE(made.all() == wanted.all())
          << level.name << ' ' << int(step.state) << ' ' << int(step.param);
    }
    AdamwMemory cut(step, 1);
    const AdamwTensor whole = cut.run(5);
    adamw_step(
        std::vector{part_of(whole, step, kDynamicBlock, kStepped), part_of(whole, step, 0, kDynamicBlock)},
        step, 2);
    EXPECT_TRUE(cut.all() == wanted.all()) << int(step.state);
    const size_t rest = size_t(kStepped * size_of(step.param));  // nothing after the last element changed
    EXPECT_TRUE(
        std::equal(wanted.param.begin() + i64(rest), wanted.param.end(), before.param.begin() + i64(rest)));
  }
}

TEST(AdamwPass, ParametersInBf16AreF32WithTheirResiduals) {
  const AdamwStep wide{DType::kF32, DType::kF32, AdamwState::kF32, 1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, 1, 3};
  AdamwStep narrow = wide;
  narrow.param = DType::kBf16;
  AdamwMemory a(wide, 2), b(wide, 2);
  b.param.resize(a.param.size() / 2);
  const auto split = [](const std::vector<u8>& from, i64 i) {
    u32 bits;
    std::memcpy(&bits, &from[size_t(4 * i)], 4);
    const u16 upper = u16((bits + 0x8000) >> 16);
    return std::pair{upper, u16(bits - (u32(upper) << 16))};
  };
  for (i64 i = 0; i < kStepped; ++i) {
    const auto [upper, rest] = split(a.param, i);
    std::memcpy(&b.param[size_t(2 * i)], &upper, 2), std::memcpy(&b.residual[size_t(2 * i)], &rest, 2);
  }
  adamw_step(std::vector{a.run(0)}, wide, 1);
  adamw_step(std::vector{b.run(0)}, narrow, 1);
  for (i64 i = 0; i < kStepped; ++i) {
    u16 upper, rest;
    std::memcpy(&upper, &b.param[size_t(2 * i)], 2), std::memcpy(&rest, &b.residual[size_t(2 * i)], 2);
    ASSERT_EQ(std::pair(upper, rest), split(a.param, i)) << i;
  }
}

TEST(DynamicCode, EachNumberTakesTheNearestValue) {
  for (const bool is_signed : {true, false}) {
    const DynamicCode& code = DynamicCode::of(is_signed);
    for (size_t i = 0; i < 256; ++i) EXPECT_EQ(code.code_of(code.values[i]), i);
    for (u32 upper = 0; upper <= 0x3f80; ++upper)
      for (const u32 lower : {0u, 0x3fffu, 0xffffu})
        for (const u32 sign : {0u, 0x80000000u}) {
          const float x = std::bit_cast<float>(sign | upper << 16 | (upper == 0x3f80 ? 0u : lower));
          const size_t made = code.code_of(x);
          const float off = std::abs(x - code.values[made]) * (1 - 1e-5f);  // middles are rounded
          ASSERT_LE(off, std::abs(x - code.values[made - (made > 0)])) << x;
          ASSERT_LE(off, std::abs(x - code.values[made + (made < 255)])) << x;
        }
  }
}

}  // namespace
}  // namespace heddle
