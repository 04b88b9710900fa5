// A block has runs of 32 elements, and a run has parts of 8 (in IQ3 two rows of 4).
#include <bit>
#include <cstring>

#include "heddle/base/float16.h"
#include "heddle/model/hf/gguf_grids.h"

namespace heddle {
namespace {

using Bytes = const uint8_t*;

constexpr int kRuns = 8, kParts = 4, kElems = 8;

template <class T>
T load_as(Bytes at) {
  T number = 0;
  std::memcpy(&number, at, sizeof number);
  return number;
}

float scale_at(Bytes at) {
  return f16_to_float(load_as<uint16_t>(at));
}

// Eight signs of seven bits: the last makes the number of minuses even.
unsigned signs_of(uint32_t bits) {
  return (bits & 127u) | unsigned(std::popcount(bits & 127u) & 1) << 7;
}

int four_bits(Bytes bytes, int i) {
  return bytes[i / 2] >> (4 * (i % 2)) & 15;
}

float with_sign(float value, unsigned signs, int i) {
  return value * (signs >> i & 1u ? -1.0f : 1.0f);
}

// The eight elements of a row of 2-bit codes.
void write_twos(float scale, uint16_t row, unsigned signs, float* out) {
  constexpr float kValues[] = {8, 25, 43, 0};
  for (int i = 0; i < kElems; ++i) out[i] = with_sign(scale * kValues[row >> (2 * i) & 3], signs, i);
}

// The eight elements of two rows of 3-bit codes.
void write_threes(float scale, const float (&values)[8], uint16_t first, uint16_t second, unsigned signs,
                  float* out) {
  const uint32_t rows = first | uint32_t(second) << 16;
  for (int i = 0; i < kElems; ++i) out[i] = with_sign(scale * values[rows >> (4 * i) & 7], signs, i);
}

// The eight elements of a row of codes of -1, 0 and 1.
void write_ones(float scale, uint16_t row, float delta, float* out) {
  for (int i = 0; i < kElems; ++i) out[i] = scale * (float(int(row >> (2 * i) & 3) - 1) + delta);
}

}  // namespace

void iq2_xxs(Bytes block, float* out) {
  const float d = scale_at(block);
  for (int run = 0; run < kRuns; ++run) {
    const Bytes rows = block + 2 + 8 * run;
    const auto more = load_as<uint32_t>(rows + 4);  // four times seven signs, and a scale
    const float scale = d * (0.5f + float(more >> 28)) * 0.25f;
    for (int part = 0; part < kParts; ++part, out += kElems)
      write_twos(scale, kIq2Xxs[rows[part]], signs_of(more >> (7 * part)), out);
  }
}

void iq2_xs(Bytes block, float* out) {
  const float d = scale_at(block);
  for (int part = 0; part < kRuns * kParts; ++part, out += kElems) {
    const auto code = load_as<uint16_t>(block + 2 + 2 * part);  // a row, and seven signs
    const float scale = d * (0.5f + float(four_bits(block + 66, part / 2))) * 0.25f;
    write_twos(scale, kIq2Xs[code & 511], signs_of(code >> 9), out);
  }
}

void iq2_s(Bytes block, float* out) {
  const Bytes codes = block + 2, signs = block + 34, high = block + 66, scales = block + 74;
  const float d = scale_at(block);
  for (int part = 0; part < kRuns * kParts; ++part, out += kElems) {
    const int row = codes[part] | (high[part / 4] >> (2 * (part % 4)) & 3) << 8;
    write_twos(d * (0.5f + float(four_bits(scales, part / 2))) * 0.25f, kIq2S[row], signs[part], out);
  }
}

void iq3_xxs(Bytes block, float* out) {
  constexpr float kValues[] = {4, 12, 20, 28, 36, 44, 52, 62};
  const float d = scale_at(block);
  for (int run = 0; run < kRuns; ++run) {
    const auto more = load_as<uint32_t>(block + 66 + 4 * run);  // four times seven signs, and a scale
    const float scale = d * (0.5f + float(more >> 28)) * 0.5f;
    for (int part = 0; part < kParts; ++part, out += kElems) {
      const Bytes rows = block + 2 + 2 * (kParts * run + part);
      write_threes(scale, kValues, kIq3Xxs[rows[0]], kIq3Xxs[rows[1]], signs_of(more >> (7 * part)), out);
    }
  }
}

void iq3_s(Bytes block, float* out) {
  constexpr float kValues[] = {1, 3, 5, 7, 9, 11, 13, 15};
  const Bytes codes = block + 2, high = block + 66, signs = block + 74, scales = block + 106;
  const float d = scale_at(block);
  const auto row = [&](int i) { return kIq3S[codes[i] | (high[i / 8] >> (i % 8) & 1) << 8]; };
  for (int part = 0; part < kRuns * kParts; ++part, out += kElems) {
    const float scale = d * float(1 + 2 * four_bits(scales, part / kParts));
    write_threes(scale, kValues, row(2 * part), row(2 * part + 1), signs[part], out);
  }
}

void iq1_s(Bytes block, float* out) {
  const float d = scale_at(block);
  for (int run = 0; run < kRuns; ++run) {
    const int more =
        load_as<uint16_t>(block + 34 + 2 * run);  // four times three bits of rows, a scale, and a sign
    const float scale = d * float(2 * (more >> 12 & 7) + 1), delta = more & 0x8000 ? -0.125f : 0.125f;
    for (int part = 0; part < kParts; ++part, out += kElems)
      write_ones(scale, kIq1S[block[2 + kParts * run + part] | (more >> (3 * part) & 7) << 8], delta, out);
  }
}

// The scale of the block lies in the high four bits of four words of scales.
void iq1_m(Bytes block, float* out) {
  const Bytes high = block + 32, scales = block + 48;
  unsigned all = 0;
  for (int i = 0; i < 4; ++i) all |= unsigned(load_as<uint16_t>(scales + 2 * i)) >> 12 << (4 * i);
  const float d = f16_to_float(static_cast<uint16_t>(all));
  for (int part = 0; part < kRuns * kParts; ++part, out += kElems) {
    const int scale = load_as<uint16_t>(scales + part / 8 * 2) >> (3 * (part / 2 % 4)) & 7;
    const int more = four_bits(high, part);  // three bits of the row, and a sign
    write_ones(d * float(2 * scale + 1), kIq1S[block[part] | (more & 7) << 8], more & 8 ? -0.125f : 0.125f,
               out);
  }
}

}  // namespace heddle
