#include "heddle/model/hf/layer_norm_config.h"

#include <fmt/format.h>

namespace heddle {
namespace {

constexpr int kMaxBiases = 1 << 26;

CohereConfig read_cohere_kin(const Config& config, double theta) {
  CohereConfig c{read_decoder_config(config, {.sizes = {256000, 8192, 22528, 40, 64, 8192},
                                              .tie_word_embeddings = true,
                                              .eps_key = "layer_norm_eps",
                                              .eps = 1e-5})};
  c.logit_scale = config.optional_number("logit_scale", 0.0625, 1e-6, 1e6);
  c.attention_bias = config.optional_bool("attention_bias", false);
  RopePlace place = place_of(c);
  place.theta = theta;
  c.rope = read_rope(config, place);
  return c;
}

RopeConfig read_partial_rope(const Config& config, const DecoderConfig& c, double partial,
                             const char* key = "partial_rotary_factor") {
  RopePlace place = place_of(c);
  place.partial = partial;
  place.partial_key = key;
  return read_rope(config, place);
}

}  // namespace

CohereConfig read_cohere_config(const Config& config) {
  refuse_foreign(config, "Cohere");
  CohereConfig c = read_cohere_kin(config, 500'000.0);
  c.use_qk_norm = config.optional_bool("use_qk_norm", false);
  return c;
}

CohereConfig read_cohere2_config(const Config& config) {
  refuse_foreign(config, "Cohere2", {"sliding_window"});
  config.refuse_unless("use_qk_norm");
  CohereConfig c = read_cohere_kin(config, 10'000.0);
  const auto but_every = [](int layer, int pattern) { return (layer + 1) % pattern != 0; };
  c.windows = read_windows(config, c.num_hidden_layers, read_sliding_window(config, 4096), but_every,
                           config.optional_int("sliding_window_pattern", 4, 1, kMaxLayers));
  return c;
}

DecoderConfig read_starcoder2_config(const Config& config) {
  refuse_foreign(config, "Starcoder2", {"sliding_window"});
  DecoderConfig c = read_decoder_config(config, {.sizes = {49152, 3072, 12288, 30, 24, 4096},
                                                 .num_key_value_heads = 2,
                                                 .hidden_act = "gelu_pytorch_tanh",
                                                 .tie_word_embeddings = true,
                                                 .eps_key = "norm_epsilon",
                                                 .eps = 1e-5});
  c.attention_bias = c.mlp_bias = config.optional_bool("use_bias", true);
  c.windows.assign(size_t(c.num_hidden_layers), read_sliding_window(config, 0));
  c.rope = read_rope(config, c);
  return c;
}

StablelmConfig read_stablelm_config(const Config& config) {
  refuse_foreign(config, "StableLm");
  StablelmConfig c{read_decoder_config(config, {.sizes = {50304, 2560, 6912, 32, 32, 4096},
                                                .num_key_value_heads = 32,
                                                .eps_key = "layer_norm_eps",
                                                .eps = 1e-5})};
  c.attention_bias = config.optional_bool("use_qkv_bias", false);
  c.qk_layernorm = config.optional_bool("qk_layernorm", false);
  c.use_parallel_residual = config.optional_bool("use_parallel_residual", false);
  c.rope = read_partial_rope(config, c, 0.25);
  return c;
}

DecoderConfig read_nemotron_config(const Config& config) {
  refuse_foreign(config, "Nemotron");
  DecoderConfig c = read_decoder_config(config, {.sizes = {256000, 6144, 24576, 32, 48, 4096},
                                                 .hidden_act = "relu2",
                                                 .eps_key = "norm_eps",
                                                 .eps = 1e-5});
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope = read_partial_rope(config, c, 0.5);
  return c;
}

GptNeoxConfig read_gpt_neox_config(const Config& config) {
  refuse_foreign(config, "GPTNeoX");
  GptNeoxConfig c{read_decoder_config(config, {.sizes = {50432, 6144, 24576, 44, 64, 2048},
                                               .hidden_act = "gelu",
                                               .eps_key = "layer_norm_eps",
                                               .eps = 1e-5})};
  c.num_key_value_heads = c.num_attention_heads;
  c.head_dim = c.hidden_size / c.num_attention_heads;  // as in transformers, whatever the file says
  if (c.hidden_size % (2 * c.num_attention_heads) != 0)
    config.reject("hidden_size", "must be an even multiple of num_attention_heads");
  c.attention_bias = config.optional_bool("attention_bias", true);
  c.use_parallel_residual = config.optional_bool("use_parallel_residual", true);
  RopePlace place = place_of(c);
  place.partial = 0.25;
  place.partial_key = "rotary_pct";
  place.theta_key = "rotary_emb_base";
  c.rope = read_rope(config, place);
  return c;
}

PhiConfig read_phi_config(const Config& config) {
  refuse_foreign(config, "Phi");
  PhiConfig c{read_decoder_config(config, {.sizes = {51200, 2048, 8192, 24, 32, 2048},
                                           .hidden_act = "gelu_new",
                                           .eps_key = "layer_norm_eps",
                                           .eps = 1e-5})};
  c.qk_layernorm = config.optional_bool("qk_layernorm", false);
  c.rope = read_partial_rope(config, c, 0.5);
  return c;
}

FalconConfig read_falcon_config(const Config& config) {
  refuse_foreign(config, "Falcon");
  const int hidden = config.optional_int("hidden_size", 4544, 1, kMaxWidth / 4);
  FalconConfig c{read_decoder_config(config, {.sizes = {65024, 4544, 4 * hidden, 32, 71, 2048},
                                              .hidden_act_key = "activation",
                                              .hidden_act = "gelu",
                                              .tie_word_embeddings = true,
                                              .eps_key = "layer_norm_epsilon",
                                              .eps = 1e-5})};
  c.intermediate_size = config.optional_int("ffn_hidden_size", 4 * hidden, 1, kMaxWidth);
  c.new_decoder_architecture = config.optional_bool("new_decoder_architecture", false);
  c.parallel_attn = config.optional_bool("parallel_attn", true);
  c.bias = config.optional_bool("bias", false);
  c.alibi = config.optional_bool("alibi", false);
  const bool one = !c.new_decoder_architecture && config.optional_bool("multi_query", true);
  const int heads = c.num_attention_heads;
  const int kv_heads = config.optional_int("num_kv_heads", heads, 1, heads);
  c.num_key_value_heads = one ? 1 : c.new_decoder_architecture ? kv_heads : heads;
  if (heads % c.num_key_value_heads != 0) config.reject("num_kv_heads", "must divide num_attention_heads");
  c.norms = config.optional_int("num_ln_in_parallel_attn", c.new_decoder_architecture ? 2 : 1, 1, 2);
  if (!c.parallel_attn && c.new_decoder_architecture)
    config.reject("parallel_attn", "must be true in the new decoder architecture");
  if (c.norms == 2 && !c.new_decoder_architecture)
    config.reject("num_ln_in_parallel_attn", "may be 2 in the new decoder architecture only");
  c.rope = read_rope(config, c);
  // Their biases are a table.
  if (c.alibi && c.max_position_embeddings > kMaxBiases / heads)
    config.reject("max_position_embeddings",
                  fmt::format("may be at most {} for {} heads with alibi", kMaxBiases / heads, heads));
  return c;
}

}  // namespace heddle
