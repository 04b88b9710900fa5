// Rotary position embedding as config.json describes it.
#pragma once

#include <vector>

#include "heddle/model/hf/config.h"

namespace heddle {

enum class RopeType : unsigned char {
  kDefault,  // frequency i of a head is theta^(-2i / head_dim)
  kLinear,   // divided by `factor`
  kDynamic,  // as kDefault up to max_position_embeddings; longer texts change theta
  kYarn,  // low frequencies are divided by `factor`, high ones stay, with a ramp between (Peng et al., 2023)
  kLongrope,  // each divided by a number of its own, short_factor, up to original_max_position_embeddings;
              // longer texts by long_factor (Ding et al., 2024)
  kLlama3,    // as kYarn with another ramp
};

struct RopeConfig {
  double theta = 10'000.0;
  RopeType type = RopeType::kDefault;
  double factor = 1.0;  // of all types but kDefault
  // Of kYarn and kLongrope: multiplies cos and sin.
  double attention_factor = 1.0;
  // Of kYarn with mscale_all_dim: DeepSeek multiplies queries and keys by it, rotated or not.
  double score_factor = 1.0;
  // Of kYarn: turns within original_max_position_embeddings between which the ramp lies, and whether its ends
  // are rounded to whole pairs.
  double beta_fast = 32.0, beta_slow = 1.0;
  bool truncate = true;
  // Of kLlama3. Borders are wavelengths: original_max_position_embeddings / low_freq_factor and /
  // high_freq_factor.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // Of kLongrope, one for each pair of a head.
  std::vector<double> short_factor;
  int original_max_position_embeddings = 0;
  // Texts up to this length have these frequencies. transformers computes longer ones of kDynamic and kLongrope
  // with others from the first position on, so that keys that are cached would no longer be right.
  int max_positions = 0;

  // Why max_positions is what it is, for messages; "" where it is what the model was made for.
  const char* limit() const;
};

// What else of a config.json the reading depends on.
struct RopePlace {
  int max_position_embeddings = 0;
  int head_dim = 0;
  double theta = 10'000.0;  // where the file names none
};

// Reads `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling` (transformers 4). Refuses rotary
// embeddings of a part of each head.
RopeConfig read_rope(const Config& config, const RopePlace& place);

// One of `rope_parameters` that hold an object for each type of layer: that of `layer_type`, whose scaling
// transformers 4 writes in `rope_scaling` and whose theta under `theta_key`.
RopeConfig read_layer_rope(const Config& config, const std::string& layer_type, const std::string& theta_key,
                           const RopePlace& place);

}  // namespace heddle
