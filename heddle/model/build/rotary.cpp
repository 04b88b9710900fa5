#include "heddle/model/build/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heddle {
namespace {

float llama3(const RopeConfig& rope, float frequency) {
  const double original = rope.original_max_position_embeddings;
  const double longest = original / rope.low_freq_factor, shortest = original / rope.high_freq_factor;
  const double wavelength = 2 * std::numbers::pi / double(frequency);
  if (wavelength > longest) return float(double(frequency) / rope.factor);
  if (wavelength < shortest) return frequency;
  const double smooth =
      (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return float((1 - smooth) * double(frequency) / rope.factor + smooth * double(frequency));
}

// The pairs at the two ends of YaRN's ramp: those that turn beta_fast and beta_slow times within the original
// length.
struct Ramp {
  double low, high;

  Ramp(const RopeConfig& rope, int head_dim) {
    const auto pair_that_turns = [&](double times) {
      const double length = rope.original_max_position_embeddings / (times * 2 * std::numbers::pi);
      return head_dim * std::log(length) / (2 * std::log(rope.theta));
    };
    low = pair_that_turns(rope.beta_fast), high = pair_that_turns(rope.beta_slow);
    if (rope.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, head_dim - 1.0);
    if (low == high) high += 0.001;
  }
  // The share, 0 to 1, of the division by `factor` that pair i takes.
  float at(int i) const { return std::clamp((float(i) - float(low)) / float(high - low), 0.0f, 1.0f); }
};

float yarn(const RopeConfig& rope, const Ramp& ramp, int i, float power) {
  const float kept = 1 - ramp.at(i);
  return 1 / (float(rope.factor) * power) * (1 - kept) + 1 / power * kept;
}

}  // namespace

RotaryGains query_gains(const RopeConfig& rope) {
  if (rope.query_beta == 0) return {};
  RotaryGains gains{.values = {}, .period = rope.original_max_position_embeddings};
  for (int n = 0; n <= (rope.max_positions - 1) / gains.period; ++n)
    gains.values.push_back(float(1 + rope.query_beta * std::log(1.0 + n)));
  return gains;
}

Rotary rotary_of(const RopeConfig& rope, int rotary_dim, int context) {
  Rotary rotary{.inv_freq = {}, .scale = rope.attention_factor};
  const Ramp ramp(rope, rotary_dim);
  const auto& factors = context > rope.short_positions() ? rope.long_factor : rope.short_factor;
  for (int i = 0; i < rotary_dim / 2; ++i) {
    // transformers computes the exponent, the power and the reciprocal in f32.
    const float power = std::pow(float(rope.theta), float(2 * i) / float(rotary_dim));
    float frequency = 1 / power;
    if (rope.type == RopeType::kLinear) frequency /= float(rope.factor);
    if (rope.type == RopeType::kYarn) frequency = yarn(rope, ramp, i, power);
    if (rope.type == RopeType::kLongrope) frequency = 1 / (float(factors[size_t(i)]) * power);
    if (rope.type == RopeType::kLlama3) frequency = llama3(rope, frequency);
    if (rope.type == RopeType::kProportional)
      frequency = i < rope.turning_pairs ? frequency / float(rope.factor) : 0;
    rotary.inv_freq.push_back(frequency);
  }
  return rotary;
}

}  // namespace heddle
