#include "heddle/model/hf/qwen_config.h"

namespace heddle {
namespace {

QwenConfig read_qwen(const Config& config, const DecoderDefaults& defaults) {
  QwenConfig c{read_decoder_config(config, defaults)};
  const bool slides = config.optional_bool("use_sliding_window", false) && !config.is_null("sliding_window");
  const int window = config.optional_int("sliding_window", 4096, 1, kMaxPositions);
  const int first = config.optional_int("max_window_layers", 28, 0, kMaxLayers);
  c.windows = read_windows(
      config, c.num_hidden_layers, slides ? window : 0, [](int layer, int from) { return layer >= from; },
      first);
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

}  // namespace heddle
