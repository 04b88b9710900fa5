#include "heddle/model/hf/qwen_config.h"

namespace heddle {
namespace {

// 0: no window.
int read_window(const Config& config) {
  const bool slides = config.optional_bool("use_sliding_window", false) && !config.is_null("sliding_window");
  const int window = config.optional_int("sliding_window", 4096, 1, kMaxPositions);
  return slides ? window : 0;
}

QwenConfig read_qwen(const Config& config, const DecoderDefaults& defaults) {
  QwenConfig c{read_decoder_config(config, defaults)};
  const int window = read_window(config);
  const int first = config.optional_int("max_window_layers", 28, 0, kMaxLayers);
  c.windows = read_windows(
      config, c.num_hidden_layers, window, [](int layer, int from) { return layer >= from; }, first);
  c.rope = read_rope(config, c);
  return c;
}

}  // namespace

QwenConfig read_qwen2_config(const Config& config) {
  refuse_foreign(config, "Qwen2ForCausalLM", {"sliding_window"});
  return read_qwen(config, {.num_key_value_heads = 32});
}

QwenConfig read_qwen3_config(const Config& config) {
  refuse_foreign(config, "Qwen3ForCausalLM", {"sliding_window"});
  QwenConfig c = read_qwen(config, {.num_key_value_heads = 32, .head_dim = 128});
  c.attention_bias = config.optional_bool("attention_bias", false);
  return c;
}

// In transformers either all layers of this family slide, or none.
QwenMoeConfig read_qwen3_moe_config(const Config& config) {
  refuse_foreign(config, "Qwen3MoeForCausalLM", {"sliding_window", "num_local_experts"});
  config.refuse_unless("layer_types");
  QwenMoeConfig c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(config, {.num_key_value_heads = 4});
  c.windows.assign(size_t(c.num_hidden_layers), read_window(config));
  c.rope = read_rope(config, c);
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.moe_intermediate_size = config.optional_int("moe_intermediate_size", 768, 1, kMaxWidth);
  const Experts experts = read_experts(config, {.count = 128, .taken = 8});
  c.num_experts = experts.count, c.num_experts_per_tok = experts.taken;
  c.norm_topk_prob = config.optional_bool("norm_topk_prob", false);
  const int step = config.optional_int("decoder_sparse_step", 1, 1, kMaxLayers);
  for (int l = 0; l < c.num_hidden_layers; ++l) c.sparse.push_back((l + 1) % step == 0);
  for (double l : config.optional_numbers("mlp_only_layers", 0, kMaxLayers))
    if (l < c.num_hidden_layers) c.sparse[size_t(l)] = false;
  return c;
}

}  // namespace heddle
