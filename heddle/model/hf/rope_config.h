// Rotary position embedding as config.json describes it.
#pragma once

#include <string>
#include <vector>

#include "heddle/model/hf/config.h"

namespace heddle {

enum class RopeType : unsigned char {
  kDefault,  // frequency i of a head is theta^(-2i / head_dim)
  kLinear,   // divided by `factor`
  kDynamic,  // as kDefault up to max_position_embeddings; longer texts change theta
  kYarn,  // low frequencies are divided by `factor`, high ones stay, with a ramp between (Peng et al., 2023)
  kLongrope,      // each divided by its own number: short_factor for contexts up to
                  // original_max_position_embeddings, long_factor for longer ones (Ding et al., 2024)
  kLlama3,        // as kYarn with another ramp
  kProportional,  // the first pairs turn as kDefault divided by `factor`, the others not at all
};

struct RopeConfig {
  double theta = 10'000.0;
  int rotary_dim = 0;  // leading elements of a head that turn: all, or a part of them
  RopeType type = RopeType::kDefault;
  double factor = 1.0;  // all types but kDefault
  // kYarn and kLongrope: multiplies cos and sin.
  double attention_factor = 1.0;
  // kYarn with mscale_all_dim: DeepSeek multiplies queries and keys by it, rotated or not.
  double score_factor = 1.0;
  // kYarn: the ramp lies between these numbers of turns within original_max_position_embeddings. Its ends may
  // be rounded to whole pairs.
  double beta_fast = 32.0, beta_slow = 1.0;
  bool truncate = true;
  // kLlama3: limits as wavelengths, original_max_position_embeddings / low_freq_factor and /
  // high_freq_factor.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int turning_pairs = 0;  // kProportional
  // kLongrope: one for each pair that turns.
  std::vector<double> short_factor, long_factor;
  int original_max_position_embeddings = 0;
  // Queries at position p are multiplied by 1 + query_beta log(1 + floor(p / original_max_position_embeddings))
  // (Llama 4 and Ministral 3, llama_4_scaling_beta).
  double query_beta = 0;
  // Texts up to this length have these frequencies. For longer texts of kDynamic transformers uses other
  // frequencies from the first position on, so cached keys would be wrong.
  int max_positions = 0;

  // kLongrope: contexts up to this length have short_factor, longer ones long_factor; others: max_positions.
  int short_positions() const;
  // Which context may be chosen, and why, for messages; "" when there is nothing to say.
  std::string limit() const;
};

// Other parts of a config.json that the reading depends on.
struct RopePlace {
  int max_position_embeddings = 0;
  int head_dim = 0;
  double theta = 10'000.0;  // default, if the file names none
  // The default of partial_rotary_factor in families that turn a part of each head; 0: others, which turn all of it.
  double partial = 0;
  const char* partial_key = "partial_rotary_factor";  // next to rope_theta
  const char* theta_key = "rope_theta";
  bool scales_queries = false;  // reads llama_4_scaling_beta
  bool scales_theta = false;    // dynamic with `alpha` has the base theta alpha^(d / (d - 2)), d: rotary_dim
  bool has_sections =
      false;               // "mrope" and its sections: of the positions of images, which are equal in a text
  bool phi_names = false;  // "su" and "yarn" are names of longrope
  bool proportional = false;  // such a type is known
  // PhiMoE: default or longrope, whose factor of cos and sin is short_mscale. transformers keeps short_factor for longer texts too,
  // with another factor of theirs, so that they are not served.
  bool own_scales = false;
  int original = 0;  // original_max_position_embeddings, if the file has none; 0: max_position_embeddings
  const char* otherwise = "";  // rope_parameters of a file that has none, as JSON; "": those of kDefault
};

// Reads `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling` (transformers 4). Notes keys that have no
// effect in transformers.
RopeConfig read_rope(const Config& config, const RopePlace& place);

// Reads one entry of `rope_parameters` that hold an object for each type of layer: the entry of `layer_type`.
// transformers 4 writes its scaling in `rope_scaling` and its theta under `theta_key`.
RopeConfig read_layer_rope(const Config& config, const std::string& layer_type, const std::string& theta_key,
                           const RopePlace& place);

}  // namespace heddle
