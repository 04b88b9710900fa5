#include "heddle/model/hf/granite_config.h"

namespace heddle {
namespace {

GraniteConfig read(const Config& config) {
  constexpr double kLeast = 1e-6, kMost = 1e6;
  GraniteConfig c{read_decoder_config(config, {})};
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
  const Experts experts = read_experts(config, {.count = 8, .taken = 2});
  c.num_local_experts = experts.count, c.num_experts_per_tok = experts.taken;
  return c;
}

}  // namespace heddle
