#include "heddle/model/hf/gguf_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "heddle/base/float16.h"
#include "heddle/base/invariant.h"
#include "heddle/model/hf/gguf_grids.h"

namespace heddle {
namespace {

using Bytes = const uint8_t*;

constexpr int kSmall = 32, kSuper = 256;

float half_at(Bytes at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return f16_to_float(bits);
}

uint32_t word_at(Bytes at) {
  uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The code of element i of a small block: the low halves of its bytes are the first half of the elements.
int nibble(Bytes codes, int i) {
  constexpr int kHalf = kSmall / 2;
  return i < kHalf ? codes[i] & 15 : codes[i - kHalf] >> 4;
}

// A nibble and a fifth bit.
int five_bits(Bytes high, Bytes codes, int i) {
  return nibble(codes, i) | int(word_at(high) >> i & 1) << 4;
}

void q4_0(Bytes block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < kSmall; ++i) out[i] = d * float(nibble(block + 2, i) - 8);
}

void q4_1(Bytes block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < kSmall; ++i) out[i] = d * float(nibble(block + 4, i)) + m;
}

void q5_0(Bytes block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < kSmall; ++i) out[i] = d * float(five_bits(block + 2, block + 6, i) - 16);
}

void q5_1(Bytes block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < kSmall; ++i) out[i] = d * float(five_bits(block + 4, block + 8, i)) + m;
}

void q8_0(Bytes block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < kSmall; ++i) out[i] = float(int8_t(block[2 + i])) * d;
}

// Values of the codes of IQ4_NL and IQ4_XS.
constexpr int8_t kNonlinear[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void iq4_nl(Bytes block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < kSmall; ++i) out[i] = d * float(kNonlinear[nibble(block + 2, i)]);
}

// Twice the values of e2m1, with half of the exponent's power of two.
void mxfp4(Bytes block, float* out) {
  constexpr int8_t kTwice[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const unsigned exponent = block[0];
  const float d = std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
  for (int i = 0; i < kSmall; ++i) out[i] = d * float(kTwice[nibble(block + 1, i)]);
}

// Codes of two bits: runs of 32 elements have their bits at one place of 32 bytes, four runs in the same bytes.
int two_bits(Bytes codes, int i) {
  return codes[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3;
}

void q2_k(Bytes block, float* out) {
  const Bytes scales = block, codes = block + 16;
  const float d = half_at(block + 80), m = half_at(block + 82);
  for (int i = 0; i < kSuper; ++i) {
    const int scale = scales[i / 16];
    out[i] = d * float(scale & 15) * float(two_bits(codes, i)) - m * float(scale >> 4);
  }
}

// Scales of 6 bits less 32: 16 times four low bits, then two high bits each.
int q3_scale(Bytes scales, int i) {
  const int low = scales[i % 8] >> (4 * (i / 8)) & 15, high = scales[8 + i % 4] >> (2 * (i / 4)) & 3;
  return (low | high << 4) - 32;
}

void q3_k(Bytes block, float* out) {
  const Bytes high = block, codes = block + 32, scales = block + 96;
  const float d = half_at(block + 108);
  for (int i = 0; i < kSuper; ++i) {
    const int missing = high[i % 32] >> (i / 32) & 1 ? 0 : 4;
    out[i] = d * float(q3_scale(scales, i / 16)) * float(two_bits(codes, i) - missing);
  }
}

// Eight scales and eight mins of 6 bits in 12 bytes: four of each in the low bits of their bytes, which have the two high bits of
// the other four above them.
struct ScaleAndMin {
  int scale, min;
};
ScaleAndMin scale_and_min(Bytes packed, int i) {
  if (i < 4) return {packed[i] & 63, packed[i + 4] & 63};
  return {(packed[i + 4] & 15) | packed[i - 4] >> 6 << 4, packed[i + 4] >> 4 | packed[i] >> 6 << 4};
}

// Runs of 32 elements have the low or the high halves of 32 bytes.
int nibble_of_runs(Bytes codes, int i) {
  return codes[i / 64 * 32 + i % 32] >> (4 * (i / 32 % 2)) & 15;
}

// `high`: null, or a fifth bit of each code, those of 32 adjacent elements in one bit of 32 bytes.
void q4_or_5_k(Bytes block, Bytes high, Bytes codes, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < kSuper; ++i) {
    const auto [scale, min] = scale_and_min(block + 4, i / 32);
    const int fifth = high ? high[i % 32] >> (i / 32) & 1 : 0;
    out[i] = d * float(scale) * float(nibble_of_runs(codes, i) | fifth << 4) - m * float(min);
  }
}

void q4_k(Bytes block, float* out) {
  q4_or_5_k(block, nullptr, block + 16, out);
}
void q5_k(Bytes block, float* out) {
  q4_or_5_k(block, block + 16, block + 48, out);
}

void q6_k(Bytes block, float* out) {
  const Bytes low = block, high = block + 128, scales = block + 192;
  const float d = half_at(block + 208);
  for (int i = 0; i < kSuper; ++i) {
    const int nibble = low[i / 128 * 64 + i % 64] >> (4 * (i / 64 % 2)) & 15;
    out[i] = d * float(int8_t(scales[i / 16])) * float((nibble | two_bits(high, i) << 4) - 32);
  }
}

void iq4_xs(Bytes block, float* out) {
  const float d = half_at(block);
  const uint32_t high = word_at(block) >> 16;
  for (int i = 0; i < kSuper; ++i) {
    const int run = i / kSmall;
    const int low = block[4 + run / 2] >> (4 * (run % 2)) & 15;
    const int scale = (low | int(high >> (2 * run) & 3) << 4) - 32;
    out[i] = d * float(scale) * float(kNonlinear[nibble(block + 8 + run * kSmall / 2, i % kSmall)]);
  }
}

struct Expansion {
  std::string_view type;
  void (*block)(Bytes from, float* out);
};
constexpr Expansion kExpansions[] = {
    {"Q4_0", q4_0},       {"Q4_1", q4_1},     {"Q5_0", q5_0},   {"Q5_1", q5_1},       {"Q8_0", q8_0},
    {"Q2_K", q2_k},       {"Q3_K", q3_k},     {"Q4_K", q4_k},   {"Q5_K", q5_k},       {"Q6_K", q6_k},
    {"IQ4_NL", iq4_nl},   {"IQ4_XS", iq4_xs}, {"MXFP4", mxfp4}, {"IQ1_S", iq1_s},     {"IQ1_M", iq1_m},
    {"IQ2_XXS", iq2_xxs}, {"IQ2_XS", iq2_xs}, {"IQ2_S", iq2_s}, {"IQ3_XXS", iq3_xxs}, {"IQ3_S", iq3_s},
};

}  // namespace

void expand_blocks(const GgufType& type, std::span<const std::byte> blocks, std::span<float> values) {
  const auto found = std::ranges::find(kExpansions, std::string_view(type.name), &Expansion::type);
  HEDDLE_CHECK(found != std::end(kExpansions));
  const auto* from = reinterpret_cast<Bytes>(blocks.data());
  float* to = values.data();
  for (size_t i = 0; i < blocks.size() / size_t(type.bytes); ++i)
    found->block(from + i * size_t(type.bytes), to + i * size_t(type.elems));
}

}  // namespace heddle
