#include "heddle/model/hf/llama_kin_config.h"

#include <fmt/format.h>

namespace heddle {

Smollm3Config read_smollm3_config(const Config& config) {
  refuse_foreign(config, "SmolLM3", {"sliding_window"});
  Smollm3Config c{read_decoder_config(config, {.num_key_value_heads = 4, .tie_word_embeddings = true})};
  RopePlace place = place_of(c);
  place.theta = 2'000'000.0;
  c.rope = read_rope(config, place);
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);

  const auto given = config.optional_numbers("no_rope_layers", 0, 1);  // 1: a layer turns
  const int interval = config.optional_int("no_rope_layer_interval", 4, 1, kMaxLayers);
  if (config.has("no_rope_layers") && given.size() != size_t(c.num_hidden_layers))
    config.reject("no_rope_layers",
                  fmt::format("must be {} numbers, one for each layer", c.num_hidden_layers));
  for (int l = 0; l < c.num_hidden_layers; ++l)
    c.turns.push_back(given.empty() ? (l + 1) % interval != 0 : given[size_t(l)] != 0);

  const int window = config.optional_bool("use_sliding_window", false) ? read_sliding_window(config, 0) : 0;
  if (window == 0 && !config.has("layer_types")) return c;
  if (window == 0) config.refuse_unless("use_sliding_window");
  c.windows = read_windows(
      config, c.num_hidden_layers, window, [](int, int) { return false; }, 0);
  if (!config.has("layer_types"))
    for (int l = 0; l < c.num_hidden_layers; ++l) c.windows[size_t(l)] = c.turns[size_t(l)] ? 0 : window;
  return c;
}

SeedOssConfig read_seed_oss_config(const Config& config) {
  refuse_foreign(config, "SeedOss");
  note_unless(config, "pretraining_tp", {"1"}, "it only splits products in training; it has no effect here");
  SeedOssConfig c{read_decoder_config(config, {.num_key_value_heads = 8, .head_dim = 128})};
  c.attention_bias = config.optional_bool("attention_bias", true);
  c.attention_out_bias = config.optional_bool("attention_out_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

// sliding_window_pattern is a number, or letters of which the file also writes layer_types.
Exaone4Config read_exaone4_config(const Config& config) {
  refuse_foreign(config, "Exaone4", {"sliding_window"});
  Exaone4Config c{read_decoder_config(config, {.num_key_value_heads = 32, .eps = 1e-5})};
  const int window = read_sliding_window(config, 4096);
  const auto but_every = [](int layer, int pattern) { return pattern > 0 && (layer + 1) % pattern != 0; };
  const int pattern =
      config.has("layer_types") ? 4 : config.optional_int("sliding_window_pattern", 4, 0, kMaxLayers);
  c.windows = read_windows(config, c.num_hidden_layers, window, but_every, pattern);
  c.turns_all = window == 0;
  c.rope = read_rope(config, c);
  return c;
}

DecoderConfig read_hunyuan_dense_config(const Config& config) {
  refuse_foreign(config, "HunYuanDenseV1");
  note_unless(config, "pretraining_tp", {"1"}, "it only splits products in training; it has no effect here");
  DecoderConfig c = read_decoder_config(config, {.eps = 1e-5});
  c.attention_bias = config.optional_bool("attention_bias", false);
  RopePlace place = place_of(c);
  place.scales_theta = true;
  c.rope = read_rope(config, place);
  return c;
}

Ministral3Config read_ministral3_config(const Config& config) {
  refuse_foreign(config, "Ministral3", {"sliding_window"});
  Ministral3Config c{read_decoder_config(config, {.num_key_value_heads = 8, .head_dim = 128, .eps = 1e-5})};
  if (!config.has("rope_parameters") && !config.has("rope_scaling"))
    config.refuse("rope_parameters", "a file of this family must have them");
  c.windows.assign(size_t(c.num_hidden_layers), read_sliding_window(config, 0));
  RopePlace place = place_of(c);
  place.scales_queries = true;
  c.query_rope = c.rope = read_rope(config, place);
  c.rope.query_beta = 0;
  return c;
}

DecoderConfig read_phi3_config(const Config& config) {
  refuse_foreign(config, "Phi3", {"sliding_window"});
  DecoderConfig c = read_decoder_config(config, {.eps = 1e-5});
  c.windows.assign(size_t(c.num_hidden_layers), read_sliding_window(config, 0));
  RopePlace place = place_of(c);
  place.partial = 1;
  place.original = 4096;
  place.phi_names = true;
  c.rope = read_rope(config, place);
  return c;
}

}  // namespace heddle
