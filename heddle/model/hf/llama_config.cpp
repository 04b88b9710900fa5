#include "heddle/model/hf/llama_config.h"

namespace heddle {

LlamaConfig read_llama_config(const Config& config) {
  refuse_foreign(config, "LlamaForCausalLM");
  refuse_partial_rope(config);
  config.refuse_unless("pretraining_tp", {"1"});

  LlamaConfig c;
  c.vocab_size = config.required_int("vocab_size", 1, kMaxVocab);
  c.hidden_size = config.required_int("hidden_size", 1, kMaxWidth);
  c.intermediate_size = config.required_int("intermediate_size", 1, kMaxWidth);
  c.num_hidden_layers = config.required_int("num_hidden_layers", 1, kMaxLayers);
  c.num_attention_heads = config.required_int("num_attention_heads", 1, kMaxHeads);
  c.num_key_value_heads =
      config.optional_int("num_key_value_heads", c.num_attention_heads, 1, c.num_attention_heads);
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    config.reject("num_key_value_heads", "must divide num_attention_heads");

  c.head_dim = config.optional_int("head_dim", c.hidden_size / c.num_attention_heads, 1, kMaxHeadDim);
  if (!config.has("head_dim") && c.hidden_size % c.num_attention_heads != 0)
    config.reject("hidden_size", "must be a multiple of num_attention_heads where there is no head_dim");
  if (c.head_dim % 2 != 0) config.reject("head_dim", "must be even; rotary embeddings turn pairs");

  c.max_position_embeddings = config.required_int("max_position_embeddings", 1, kMaxPositions);
  c.rms_norm_eps = config.optional_number("rms_norm_eps", 1e-6, 0.0, 1.0);
  c.hidden_act = read_hidden_act(config, "hidden_act", "silu");
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.tie_word_embeddings = config.optional_bool("tie_word_embeddings", false);
  c.rope = read_rope(config, c.max_position_embeddings);
  return c;
}

}  // namespace heddle
