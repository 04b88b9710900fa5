#include "heddle/model/hf/decoder_config.h"

#include <fmt/format.h>

namespace heddle {

DecoderConfig read_decoder_config(const Config& config, const DecoderDefaults& defaults) {
  DecoderConfig c;
  const DefaultSizes& sizes = defaults.sizes;
  c.vocab_size = config.optional_int("vocab_size", sizes.vocab, 1, kMaxVocab);
  c.hidden_size = config.optional_int("hidden_size", sizes.hidden, 1, kMaxWidth);
  c.intermediate_size = config.optional_int("intermediate_size", sizes.intermediate, 1, kMaxWidth);
  c.num_hidden_layers = config.optional_int("num_hidden_layers", sizes.layers, 1, kMaxLayers);
  c.num_attention_heads = config.optional_int("num_attention_heads", sizes.heads, 1, kMaxHeads);
  const bool full = defaults.num_key_value_heads == 0 || config.is_null("num_key_value_heads");
  c.num_key_value_heads =
      config.optional_int("num_key_value_heads", full ? c.num_attention_heads : defaults.num_key_value_heads,
                          1, c.num_attention_heads);
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    config.reject("num_key_value_heads", "must divide num_attention_heads");

  const bool divided = defaults.head_dim == 0;
  c.head_dim = config.optional_int(
      "head_dim", divided ? c.hidden_size / c.num_attention_heads : defaults.head_dim, 1, kMaxHeadDim);
  if (divided && !config.has("head_dim") && c.hidden_size % c.num_attention_heads != 0)
    config.reject("hidden_size", "must be a multiple of num_attention_heads where there is no head_dim");
  if (c.head_dim % 2 != 0) config.reject("head_dim", "must be even; rotary embeddings turn pairs");

  c.max_position_embeddings =
      config.optional_int("max_position_embeddings", sizes.positions, 1, kMaxPositions);
  c.rms_norm_eps = config.optional_number(defaults.eps_key, defaults.eps, 0.0, 1.0);
  c.hidden_act = read_hidden_act(config, defaults.hidden_act_key, defaults.hidden_act);
  c.tie_word_embeddings = config.optional_bool("tie_word_embeddings", defaults.tie_word_embeddings);
  return c;
}

RopePlace place_of(const DecoderConfig& decoder) {
  return {.max_position_embeddings = decoder.max_position_embeddings, .head_dim = decoder.head_dim};
}

RopeConfig read_rope(const Config& config, const DecoderConfig& decoder) {
  return read_rope(config, place_of(decoder));
}

Experts read_experts(const Config& config, const Experts& defaults) {
  const std::string key = config.has("num_local_experts") ? "num_local_experts" : "num_experts";
  const int count = config.optional_int(key, defaults.count, 1, kMaxExperts);
  if (config.has("num_local_experts") && config.has("num_experts") &&
      config.optional_int("num_experts", count, 1, kMaxExperts) != count)
    config.reject("num_experts", fmt::format("must be num_local_experts, {}", count));
  return {count, config.optional_int("num_experts_per_tok", defaults.taken, 1, count)};
}

int read_sliding_window(const Config& config, int fallback) {
  if (config.is_null("sliding_window")) return 0;
  return config.optional_int("sliding_window", fallback, fallback > 0 ? 1 : 0, kMaxPositions);
}

std::vector<int> read_windows(const Config& config, int layers, int window,
                              bool (*slides)(int layer, int arg), int arg) {
  const std::vector<std::string> types = config.optional_strings("layer_types");
  std::vector<int> windows;
  if (!config.has("layer_types")) {
    for (int l = 0; l < layers; ++l) windows.push_back(slides(l, arg) ? window : 0);
    return windows;
  }
  if (types.size() != size_t(layers))
    config.reject("layer_types", fmt::format("must be {} names, one for each layer", layers));
  for (const std::string& type : types) {
    const bool slides_here = type == "sliding_attention";
    if (!slides_here && type != "full_attention")
      config.refuse("layer_types", "layers may be full_attention or sliding_attention");
    if (slides_here && window == 0)
      config.reject("layer_types", "has sliding_attention, for which there must be a sliding_window in use");
    windows.push_back(slides_here ? window : 0);
  }
  return windows;
}

}  // namespace heddle
