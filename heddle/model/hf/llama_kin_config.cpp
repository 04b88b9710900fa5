#include "heddle/model/hf/llama_kin_config.h"

#include <fmt/format.h>

namespace heddle {

Smollm3Config read_smollm3_config(const Config& config) {
  refuse_foreign(config, "SmolLM3", {"sliding_window"});
  Smollm3Config c{read_decoder_config(config, {.sizes = {128256, 2048, 11008, 36, 16, 32768},
                                               .num_key_value_heads = 4,
                                               .tie_word_embeddings = true})};
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
  SeedOssConfig c{read_decoder_config(
      config, {.sizes = {155136, 4096, 27648, 64, 80, 524288}, .num_key_value_heads = 8, .head_dim = 128})};
  c.attention_bias = config.optional_bool("attention_bias", true);
  c.attention_out_bias = config.optional_bool("attention_out_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

// sliding_window_pattern is a number, or letters of which the file also writes layer_types.
Exaone4Config read_exaone4_config(const Config& config) {
  refuse_foreign(config, "Exaone4", {"sliding_window"});
  Exaone4Config c{read_decoder_config(
      config, {.sizes = {102400, 4096, 16384, 32, 32, 2048}, .num_key_value_heads = 32, .eps = 1e-5})};
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
  DecoderConfig c = read_decoder_config(config, {.sizes = {290943, 4096, 11008, 32, 32, 2048}, .eps = 1e-5});
  c.attention_bias = config.optional_bool("attention_bias", false);
  RopePlace place = place_of(c);
  place.scales_theta = true;
  c.rope = read_rope(config, place);
  return c;
}

Ministral3Config read_ministral3_config(const Config& config) {
  refuse_foreign(config, "Ministral3", {"sliding_window"});
  Ministral3Config c{read_decoder_config(config, {.sizes = {131072, 4096, 14336, 34, 32, 262144},
                                                  .num_key_value_heads = 8,
                                                  .head_dim = 128,
                                                  .eps = 1e-5})};
  c.windows.assign(size_t(c.num_hidden_layers), read_sliding_window(config, 0));
  RopePlace place = place_of(c);
  place.scales_queries = true;
  place.otherwise = R"({"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "beta_fast": 32.0,
                        "beta_slow": 1.0, "original_max_position_embeddings": 16384, "mscale": 1.0,
                        "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1})";
  c.query_rope = c.rope = read_rope(config, place);
  c.rope.query_beta = 0;
  return c;
}

DecoderConfig read_phi3_config(const Config& config) {
  refuse_foreign(config, "Phi3", {"sliding_window"});
  DecoderConfig c = read_decoder_config(config, {.sizes = {32064, 3072, 8192, 32, 32, 4096}, .eps = 1e-5});
  c.windows.assign(size_t(c.num_hidden_layers), read_sliding_window(config, 0));
  RopePlace place = place_of(c);
  place.partial = 1;
  place.original = 4096;
  place.phi_names = true;
  c.rope = read_rope(config, place);
  return c;
}

// Published files say by rotary_dim which part of a head turns. Their other keys describe what all models of this type have.
MinimaxM2Config read_minimax_m2_config(const Config& config) {
  refuse_foreign(config, "MiniMaxM2", {"num_local_experts"});
  config.refuse_unless("qk_norm_type", {"\"per_layer\""});
  config.refuse_unless("scoring_func", {"\"sigmoid\""});
  config.refuse_unless("shared_intermediate_size", {"0"});
  for (const double kind : config.optional_numbers("attn_type_list", 0, 1))
    if (kind == 0) config.refuse("attn_type_list", "layers of lightning attention (0) have no op yet");
  MinimaxM2Config c{read_decoder_config(
      config, {.sizes = {200064, 3072, 1536, 62, 48, 196608}, .num_key_value_heads = 8, .head_dim = 128})};
  c.experts = read_experts(config, {.count = 256, .taken = 8});
  RopePlace place = place_of(c);
  place.theta = 5'000'000.0;
  place.partial = double(config.optional_int("rotary_dim", c.head_dim, 2, c.head_dim)) / c.head_dim;
  c.rope = read_rope(config, place);
  return c;
}

}  // namespace heddle
