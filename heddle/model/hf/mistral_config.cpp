#include "heddle/model/hf/mistral_config.h"

namespace heddle {

namespace {

// A sliding_window of null means no window.
MistralConfig read(const Config& config, int window, double eps, double theta) {
  config.refuse_unless("layer_types");  // transformers reads it only in other families
  MistralConfig c{read_decoder_config(
      config, {.sizes = {32000, 4096, 14336, 32, 32, 131072}, .num_key_value_heads = 8, .eps = eps})};
  c.sliding_window = read_sliding_window(config, window);
  c.windows.assign(size_t(c.num_hidden_layers), c.sliding_window);
  RopePlace place = place_of(c);
  place.theta = theta;
  c.rope = read_rope(config, place);
  return c;
}

}  // namespace

// The first models were published without sliding_window.
MistralConfig read_mistral_config(const Config& config) {
  refuse_foreign(config, "Mistral", {"sliding_window"});
  return read(config, 4096, 1e-6, 10'000.0);
}

MixtralConfig read_mixtral_config(const Config& config) {
  refuse_foreign(config, "Mixtral", {"sliding_window", "num_local_experts"});
  MixtralConfig c{read(config, 0, 1e-5, 1'000'000.0)};
  const Experts experts = read_experts(config, {.count = 8, .taken = 2});
  c.num_local_experts = experts.count, c.num_experts_per_tok = experts.taken;
  return c;
}

PhimoeConfig read_phimoe_config(const Config& config) {
  refuse_foreign(config, "Phimoe", {"sliding_window", "num_local_experts"});
  config.refuse_unless("layer_types");
  PhimoeConfig c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(
      config, {.sizes = {32064, 4096, 6400, 32, 32, 131072}, .num_key_value_heads = 8, .eps = 1e-5});
  c.windows.assign(size_t(c.num_hidden_layers), read_sliding_window(config, 0));
  config.refuse_unless("num_experts_per_tok", {"2"});
  c.num_local_experts = read_experts(config, {.count = 16, .taken = 2}).count;
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.lm_head_bias = config.optional_bool("lm_head_bias", false);
  c.router_threshold = 2 * config.optional_number("router_jitter_noise", 0.01, 0.0, 1.0);
  RopePlace place = place_of(c);
  place.theta = 1'000'000.0;
  place.own_scales = true;
  c.rope = read_rope(config, place);
  return c;
}

}  // namespace heddle
