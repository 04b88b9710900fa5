#include "heddle/model/hf/llama_kin_config.h"

#include <algorithm>

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
Exaone4Config read_exaone(const Config& config, const char* family) {
  refuse_foreign(config, family, {"sliding_window"});
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

Exaone4Config read_exaone4_config(const Config& config) {
  return read_exaone(config, "Exaone4");
}

ExaoneMoeConfig read_exaone_moe_config(const Config& config) {
  ExaoneMoeConfig c{read_exaone(config, "ExaoneMoe")};
  read_grouped_experts(config,
                       {.n_routed_experts = 64,
                        .n_shared_experts = 1,
                        .num_experts_per_tok = 8,
                        .moe_intermediate_size = 1024,
                        .routed_scaling_factor = 2.5,
                        .norm_topk_prob = true},
                       c.experts, {.routed = "num_experts", .shared = "num_shared_experts"});
  c.experts.first_k_dense_replace = read_dense_layers(
      config, c.num_hidden_layers, config.optional_int("first_k_dense_replace", 1, 0, kMaxLayers));
  return c;
}

// moe_topk may be a list, with a number for each layer.
HunyuanConfig read_hunyuan_config(const Config& config) {
  const bool mixed = config.optional_string("model_type", "") == "hunyuan_v1_moe";
  refuse_foreign(config, mixed ? "HunYuanMoEV1" : "HunYuanDenseV1");
  note_unless(config, "pretraining_tp", {"1"}, "it only splits products in training; it has no effect here");
  HunyuanConfig c{read_decoder_config(config, {.sizes = {290943, 4096, 11008, 32, 32, 2048}, .eps = 1e-5})};
  if (mixed) {
    c.experts.count = config.optional_int("num_experts", 1, 1, kMaxExperts);
    const std::vector<int> taken = config.optional_ints("moe_topk", 1, c.experts.count);
    if (std::ranges::any_of(taken, [&](int one) { return one != taken[0]; }))
      config.refuse("moe_topk", "all layers may take equally many experts");
    c.experts.taken = taken.empty() ? 1 : taken[0];
  }
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

Dots1Config read_dots1_config(const Config& config) {
  refuse_foreign(config, "Dots1", {"sliding_window"});
  config.refuse_unless("scoring_func", {"\"sigmoid\"", "\"noaux_tc\""});
  Dots1Config c{
      read_decoder_config(config, {.sizes = {152064, 4608, 10944, 62, 32, 2048}, .num_key_value_heads = 32})};
  const int from = config.optional_int("max_window_layers", 62, 0, kMaxLayers);
  c.windows = read_windows(
      config, c.num_hidden_layers, read_sliding_window(config, 4096),
      [](int layer, int first) { return layer >= first; }, from);
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.rope = read_rope(config, c);
  read_grouped_experts(config, {.moe_intermediate_size = 1408}, c.experts);
  c.experts.first_k_dense_replace = config.optional_int("first_k_dense_replace", 0, 0, kMaxLayers);
  return c;
}

ErnieConfig read_ernie4_5_config(const Config& config) {
  const bool mixed = config.optional_string("model_type", "") == "ernie4_5_moe";
  refuse_foreign(config, mixed ? "Ernie4_5_Moe" : "Ernie4_5");
  DecoderDefaults defaults{.sizes = {103424, 1024, 3072, 18, 16, 131072},
                           .num_key_value_heads = 2,
                           .head_dim = 128,
                           .tie_word_embeddings = true,
                           .eps = 1e-5};
  if (mixed) defaults.sizes = {103424, 2560, 12288, 28, 20, 131072};
  if (mixed) defaults.num_key_value_heads = 4, defaults.head_dim = 0;
  ErnieConfig c{read_decoder_config(config, defaults)};
  c.attention_bias = c.mlp_bias = config.optional_bool("use_bias", false);
  RopePlace place = place_of(c);
  place.theta = 500'000.0;
  c.rope = read_rope(config, place);
  c.sparse.assign(size_t(c.num_hidden_layers), false);
  if (!mixed) return c;
  c.experts.count = config.optional_int("moe_num_experts", 64, 1, kMaxExperts);
  c.experts.taken = config.optional_int("moe_k", 6, 1, c.experts.count);
  c.shared_experts = config.optional_int("moe_num_shared_experts", 2, 0, kMaxExperts);
  c.moe_intermediate_size =
      config.optional_int("moe_intermediate_size", 1536, 1, kMaxWidth / std::max(1, c.shared_experts));
  const int first = config.optional_int("moe_layer_start_index", 1, 0, kMaxLayers),
            last = config.optional_int("moe_layer_end_index", -1, -1, kMaxLayers),
            interval = config.optional_int("moe_layer_interval", 1, 1, kMaxLayers);
  for (int l = first; l < c.num_hidden_layers && (last < 0 || l <= last); ++l)
    c.sparse[size_t(l)] = (l + 1) % interval == 0;
  return c;
}

}  // namespace heddle
