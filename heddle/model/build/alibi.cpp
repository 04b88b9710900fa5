#include "heddle/model/build/alibi.h"

#include <bit>
#include <cmath>

#include "heddle/base/element.h"

namespace heddle {
namespace {

constexpr i32 kChunk = 256;  // attention loads at most so many positions at once

// 2^(-8 k / n) for k = 1 to n, n the largest power of two among the heads; other heads have the odd k of 2n.
std::vector<float> slopes_of(i32 heads) {
  const i32 n = i32(std::bit_floor(u32(heads)));
  std::vector<float> slopes;
  for (i32 k = 1; k <= n; ++k) slopes.push_back(float(std::exp2(-8.0 * k / n)));
  for (i32 k = 1; i32(slopes.size()) < heads; k += 2)
    slopes.push_back(float(std::exp2(-8.0 * k / (2.0 * n))));
  return slopes;
}

float in_bf16(float value) {
  return round_to(DType::kBf16, value);
}

}  // namespace

std::vector<float> alibi_of(const Heads& heads, i32 positions) {
  const float root = std::sqrt(float(heads.dim));
  std::vector<float> biases;
  biases.reserve(size_t(heads.query) * size_t(positions + kChunk));
  for (const float slope : slopes_of(heads.query))
    for (i32 p = 0; p < positions + kChunk; ++p)
      biases.push_back(in_bf16(in_bf16(slope) * in_bf16(float(p))) / root);
  return biases;
}

}  // namespace heddle
