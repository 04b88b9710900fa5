#include "heddle/model/hf/olmo_config.h"

namespace heddle {

namespace {

double read_clip(const Config& config) {
  return config.has("clip_qkv") ? config.required_number("clip_qkv", 1e-6, 1e6) : 0;
}

}  // namespace

OlmoConfig read_olmo_config(const Config& config) {
  refuse_foreign(config, "Olmo");
  OlmoConfig c{read_decoder_config(config, {.sizes = {50304, 4096, 11008, 32, 32, 2048}, .eps = 1e-5})};
  c.rms_norm_eps = 1e-5;  // no key changes it in transformers
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.clip_qkv = read_clip(config);
  c.rope = read_rope(config, c);
  return c;
}

DecoderConfig read_olmo2_config(const Config& config) {
  refuse_foreign(config, "Olmo2");
  DecoderConfig c = read_decoder_config(config, {.sizes = {50304, 4096, 11008, 32, 32, 2048}, .eps = 1e-5});
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

// transformers writes one rope for each kind of layer. The files that were published first have one, whose scaling and
// rope_theta are those of the layers that see all positions.
Olmo3Config read_olmo3_config(const Config& config) {
  refuse_foreign(config, "Olmo3", {"sliding_window"});
  Olmo3Config c{read_decoder_config(config, {.sizes = {50304, 4096, 11008, 32, 32, 2048}, .eps = 1e-5})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  const auto but_every_fourth = [](int layer, int) { return (layer + 1) % 4 != 0; };
  c.windows =
      read_windows(config, c.num_hidden_layers, read_sliding_window(config, 4096), but_every_fourth, 0);
  RopePlace place = place_of(c);
  place.theta = 500'000.0;
  c.rope = read_layer_rope(config, "full_attention", "rope_theta", place);
  c.local_rope = read_layer_rope(config, "sliding_attention", "rope_local_base_freq", place);
  return c;
}

OlmoeConfig read_olmoe_config(const Config& config) {
  refuse_foreign(config, "Olmoe", {"num_local_experts"});
  OlmoeConfig c{{read_decoder_config(config, {.sizes = {50304, 2048, 2048, 16, 16, 4096}, .eps = 1e-5})}};
  c.attention_bias = config.optional_bool("attention_bias", false);
  const Experts experts = read_experts(config, {.count = 64, .taken = 8});
  c.num_experts = experts.count, c.num_experts_per_tok = experts.taken;
  c.clip_qkv = read_clip(config);
  c.norm_topk_prob = config.optional_bool("norm_topk_prob", false);
  c.rope = read_rope(config, c);
  return c;
}

}  // namespace heddle
