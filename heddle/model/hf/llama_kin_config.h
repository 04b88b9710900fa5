// The configurations of families that differ from Llama by a few keys: SmolLM3, Seed-OSS, EXAONE, HunYuan, Ministral 3,
// Phi 3, MiniMax M2, dots.llm1 and ERNIE 4.5.
#pragma once

#include "heddle/model/hf/decoder_config.h"
#include "heddle/model/hf/grouped_experts.h"

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

struct ExaoneMoeConfig : Exaone4Config {
  GroupedExperts experts;
};

struct HunyuanConfig : DecoderConfig {
  Experts experts;  // count 0: the MLP of a layer is one
};

struct Dots1Config : DecoderConfig {
  GroupedExperts experts;
};

struct ErnieConfig : DecoderConfig {
  Experts experts;
  int moe_intermediate_size = 0, shared_experts = 0;
  std::vector<bool> sparse;  // layers that have experts
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
ExaoneMoeConfig read_exaone_moe_config(const Config& config);
HunyuanConfig read_hunyuan_config(const Config& config);
Dots1Config read_dots1_config(const Config& config);
ErnieConfig read_ernie4_5_config(const Config& config);
Ministral3Config read_ministral3_config(const Config& config);
DecoderConfig read_phi3_config(const Config& config);
MinimaxM2Config read_minimax_m2_config(const Config& config);

}  // namespace heddle
