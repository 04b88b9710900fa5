#include "heddle/model/hf/granite_config.h"

#include <algorithm>

namespace heddle {
namespace {

GraniteConfig read(const Config& config) {
  constexpr double kLeast = 1e-6, kMost = 1e6;
  GraniteConfig c{read_decoder_config(config, {.sizes = {32000, 4096, 11008, 32, 32, 2048}})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.embedding_multiplier = config.optional_number("embedding_multiplier", 1.0, kLeast, kMost);
  c.attention_multiplier = config.optional_number("attention_multiplier", 1.0, kLeast, kMost);
  c.residual_multiplier = config.optional_number("residual_multiplier", 1.0, kLeast, kMost);
  c.logits_scaling = config.optional_number("logits_scaling", 1.0, kLeast, kMost);
  c.rope = read_rope(config, c);
  return c;
}

}  // namespace

GraniteConfig read_granite_config(const Config& config) {
  refuse_foreign(config, "Granite");
  GraniteConfig c = read(config);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  return c;
}

GraniteMoeConfig read_granitemoe_config(const Config& config) {
  refuse_foreign(config, "GraniteMoe", {"num_local_experts"});
  GraniteMoeConfig c{read(config)};
  c.experts = read_experts(config, {.count = 8, .taken = 2});
  return c;
}

// In transformers a list that is missing means that all layers are of state spaces.
GraniteHybridConfig read_granitemoehybrid_config(const Config& config) {
  refuse_foreign(config, "GraniteMoeHybrid", {"num_local_experts"});
  GraniteHybridConfig c{{read(config)}};
  const char* types = config.has("layers_block_type") ? "layers_block_type" : "layer_types";
  c.attends = read_attending(config, types, c.num_hidden_layers);
  if (std::ranges::find(c.attends, false) != c.attends.end()) c.mamba = read_mamba2(config, c.hidden_size);
  const bool dense =
      config.has("num_local_experts") && config.optional_int("num_local_experts", 0, 0, kMaxExperts) == 0;
  if (!dense) c.experts = read_experts(config, {.count = 8, .taken = 2});
  c.shared_intermediate_size = config.optional_int("shared_intermediate_size", 1024, 1, kMaxWidth);
  const std::string positions = config.optional_string("position_embedding_type", "nope");
  if (positions != "rope" && positions != "nope")
    config.refuse("position_embedding_type", "it may be rope, nope or null");
  c.turns = positions == "rope";
  return c;
}

}  // namespace heddle
