#include "heddle/model/build/rotary.h"

#include <cmath>
#include <numbers>

namespace heddle {

std::vector<float> inverse_frequencies(const RopeConfig& rope, int head_dim) {
  const int rotary_dim = int(head_dim * rope.partial_rotary_factor);
  std::vector<float> frequencies;
  for (int i = 0; i < rotary_dim / 2; ++i) {
    // transformers computes in f32: the exponent, the power, the reciprocal.
    const float exponent = float(2 * i) / float(rotary_dim);
    float frequency = 1.0f / std::pow(float(rope.theta), exponent);
    if (rope.type == RopeType::kLlama3) {
      const double original = rope.original_max_position_embeddings;
      const double longest = original / rope.low_freq_factor, shortest = original / rope.high_freq_factor;
      const double wavelength = 2 * std::numbers::pi / double(frequency);
      if (wavelength > longest) {
        frequency = float(double(frequency) / rope.factor);
      } else if (wavelength >= shortest) {
        const double smooth =
            (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
        frequency = float((1 - smooth) * double(frequency) / rope.factor + smooth * double(frequency));
      }
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace heddle
