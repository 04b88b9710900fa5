#include "heddle/model/hf/qwen_config.h"

namespace heddle {
namespace {

// 0: no window.
int read_window(const Config& config) {
  const bool slides = config.optional_bool("use_sliding_window", false) && !config.is_null("sliding_window");
  const int window = config.optional_int("sliding_window", 4096, slides ? 1 : 0, kMaxPositions);
  return slides ? window : 0;
}

// A text model of Qwen's models that see images too.
bool sees_images(const Config& config) {
  return config.optional_string("model_type", "").find("_vl") != std::string::npos;
}

RopeConfig read_qwen_rope(const Config& config, const QwenConfig& c, double theta_with_images) {
  RopePlace place = place_of(c);
  place.has_sections = sees_images(config);
  if (place.has_sections) place.theta = theta_with_images;
  return read_rope(config, place);
}

QwenConfig read_qwen(const Config& config, const DecoderDefaults& defaults) {
  QwenConfig c{read_decoder_config(config, defaults)};
  const int window = read_window(config);
  const int first = config.optional_int("max_window_layers", 28, 0, kMaxLayers);
  c.windows = read_windows(
      config, c.num_hidden_layers, window, [](int layer, int from) { return layer >= from; }, first);
  return c;
}

}  // namespace

QwenConfig read_qwen2_config(const Config& config) {
  refuse_foreign(config, "Qwen2", {"sliding_window"});
  QwenConfig c =
      read_qwen(config, {.sizes = {151936, 4096, 22016, 32, 32, 32768}, .num_key_value_heads = 32});
  c.rope = read_rope(config, c);
  return c;
}

QwenConfig read_qwen2_vl_config(const Config& config) {
  const bool newer = config.optional_string("model_type", "").starts_with("qwen2_5");
  refuse_foreign(config, newer ? "Qwen2_5_VL" : "Qwen2VL", {"sliding_window"});
  QwenConfig c = read_qwen(config, {.sizes = {152064, 8192, 29568, 80, 64, 32768},
                                    .num_key_value_heads = 8,
                                    .tie_word_embeddings = false,
                                    .eps = 1e-5});
  c.rope = read_qwen_rope(config, c, 1'000'000.0);
  return c;
}

QwenConfig read_qwen3_config(const Config& config) {
  refuse_foreign(config, "Qwen3", {"sliding_window"});
  QwenConfig c = read_qwen(
      config, {.sizes = {151936, 4096, 22016, 32, 32, 32768}, .num_key_value_heads = 32, .head_dim = 128});
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

QwenConfig read_qwen3_vl_config(const Config& config) {
  refuse_foreign(config, "Qwen3VL");
  QwenConfig c{read_decoder_config(
      config, {.sizes = {151936, 4096, 22016, 32, 32, 128000}, .num_key_value_heads = 32, .head_dim = 128})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.rope = read_qwen_rope(config, c, 500'000.0);
  return c;
}

void read_qwen_mixture(const Config& config, const Experts& defaults, int inner, QwenMoeConfig& c) {
  c.moe_intermediate_size = config.optional_int("moe_intermediate_size", inner, 1, kMaxWidth);
  const Experts experts = read_experts(config, defaults);
  c.num_experts = experts.count, c.num_experts_per_tok = experts.taken;
  c.norm_topk_prob = config.optional_bool("norm_topk_prob", false);
  const int step = config.optional_int("decoder_sparse_step", 1, 1, kMaxLayers);
  for (int l = 0; l < c.num_hidden_layers; ++l) c.sparse.push_back((l + 1) % step == 0);
  for (double l : config.optional_numbers("mlp_only_layers", 0, kMaxLayers))
    if (l < c.num_hidden_layers) c.sparse[size_t(l)] = false;
}

QwenMoeConfig read_qwen2_moe_config(const Config& config) {
  refuse_foreign(config, "Qwen2Moe", {"sliding_window", "num_local_experts"});
  QwenMoeConfig c;
  static_cast<DecoderConfig&>(c) =
      read_decoder_config(config, {.sizes = {151936, 2048, 5632, 24, 16, 32768}, .num_key_value_heads = 16});
  const int most = config.optional_int("max_window_layers", 28, 0, kMaxLayers);
  const auto even_below = [](int layer, int end) { return layer % 2 == 0 && layer < end; };
  c.windows = read_windows(config, c.num_hidden_layers, read_window(config), even_below, most);
  c.rope = read_rope(config, c);
  c.attention_bias = config.optional_bool("qkv_bias", true);
  read_qwen_mixture(config, {.count = 60, .taken = 4}, 1408, c);
  c.shared_expert_intermediate_size =
      config.optional_int("shared_expert_intermediate_size", 5632, 1, kMaxWidth);
  return c;
}

// In transformers either all layers of this family slide, or none.
QwenMoeConfig read_qwen3_moe_config(const Config& config) {
  refuse_foreign(config, "Qwen3Moe", {"sliding_window", "num_local_experts"});
  config.refuse_unless("layer_types");
  QwenMoeConfig c;
  static_cast<DecoderConfig&>(c) =
      read_decoder_config(config, {.sizes = {151936, 2048, 6144, 24, 32, 32768}, .num_key_value_heads = 4});
  c.windows.assign(size_t(c.num_hidden_layers), read_window(config));
  c.rope = read_rope(config, c);
  c.attention_bias = config.optional_bool("attention_bias", false);
  read_qwen_mixture(config, {.count = 128, .taken = 8}, 768, c);
  return c;
}

// Its class has no norm_topk_prob: shares always add up to 1.
QwenMoeConfig read_qwen3_vl_moe_config(const Config& config) {
  refuse_foreign(config, "Qwen3VLMoe", {"num_local_experts"});
  QwenMoeConfig c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(config, {.sizes = {151936, 2048, 5632, 24, 16, 128000},
                                                                .num_key_value_heads = 16,
                                                                .head_dim = 0,
                                                                .tie_word_embeddings = true});
  c.rope = read_qwen_rope(config, c, 500'000.0);
  c.attention_bias = config.optional_bool("attention_bias", false);
  read_qwen_mixture(config, {.count = 60, .taken = 4}, 1408, c);
  c.norm_topk_prob = c.sees_images = true;
  return c;
}

}  // namespace heddle
