// The configurations of families that differ from Llama by a few keys: SmolLM3, Seed-OSS, EXAONE 4, HunYuan's dense
// models, Ministral 3, Phi 3 and MiniMax M2.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

struct Smollm3Config : DecoderConfig {
  std::vector<bool> turns;  // layers whose heads turn by their position
};

struct SeedOssConfig : DecoderConfig {
  bool attention_out_bias = false;
};

struct Exaone4Config : DecoderConfig {
  bool turns_all = false;  // heads turn in all layers, not only in those with a window
};

// `rope` is of the keys; that of the queries may grow with the position.
struct Ministral3Config : DecoderConfig {
  RopeConfig query_rope = {};
};

// intermediate_size is that of an expert.
struct MinimaxM2Config : DecoderConfig {
  Experts experts;
};

Smollm3Config read_smollm3_config(const Config& config);
SeedOssConfig read_seed_oss_config(const Config& config);
Exaone4Config read_exaone4_config(const Config& config);
DecoderConfig read_hunyuan_dense_config(const Config& config);
Ministral3Config read_ministral3_config(const Config& config);
DecoderConfig read_phi3_config(const Config& config);
MinimaxM2Config read_minimax_m2_config(const Config& config);

}  // namespace heddle
