#include "heddle/model/hf/gpt2_config.h"

#include <cmath>

namespace heddle {

double Gpt2Config::attention_scale(int layer) const {
  const int head_dim = n_embd / n_head;
  double scale = scale_attn_weights ? 1.0 / std::sqrt(double(head_dim)) : 1.0;
  return scale_attn_by_inverse_layer_idx ? scale / (layer + 1) : scale;
}

Gpt2Config read_gpt2_config(const Config& config) {
  refuse_foreign(config, "GPT2");

  Gpt2Config c;
  c.vocab_size = config.optional_int("vocab_size", 50257, 1, kMaxVocab);
  c.n_positions = config.optional_int("n_positions", 1024, 1, kMaxPositions);
  c.n_embd = config.optional_int("n_embd", 768, 1, kMaxWidth / 4);
  c.n_layer = config.optional_int("n_layer", 12, 1, kMaxLayers);
  c.n_head = config.optional_int("n_head", 12, 1, kMaxHeads);
  if (c.n_embd % c.n_head != 0) config.reject("n_embd", "must be a multiple of n_head");
  if (c.n_embd / c.n_head > kMaxHeadDim) config.reject("n_head", "makes heads wider than 4096");
  c.n_inner = config.optional_int("n_inner", 4 * c.n_embd, 1, kMaxWidth);
  c.activation_function = read_hidden_act(config, "activation_function", "gelu_new");
  c.layer_norm_epsilon = config.optional_number("layer_norm_epsilon", 1e-5, 0.0, 1.0);
  c.scale_attn_weights = config.optional_bool("scale_attn_weights", true);
  c.scale_attn_by_inverse_layer_idx = config.optional_bool("scale_attn_by_inverse_layer_idx", false);
  // It changes only the order of rounding in half precision; heddle sums scores in fp32 anyway.
  (void)config.optional_bool("reorder_and_upcast_attn", false);
  c.tie_word_embeddings = config.optional_bool("tie_word_embeddings", true);
  return c;
}

}  // namespace heddle
