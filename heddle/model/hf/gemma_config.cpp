#include "heddle/model/hf/gemma_config.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr double kMaxCap = 1e6;

GemmaConfig read_gemma(const Config& config, int vocab, int positions) {
  GemmaConfig c{read_decoder_config(config, {.sizes = {vocab, 2304, 9216, 26, 8, positions},
                                             .num_key_value_heads = 4,
                                             .head_dim = 256,
                                             .hidden_act_key = "hidden_activation",
                                             .hidden_act = "gelu_pytorch_tanh",
                                             .tie_word_embeddings = true})};
  config.refuse_unless("use_bidirectional_attention");
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.query_pre_attn_scalar = config.optional_number("query_pre_attn_scalar", 256.0, 1e-6, 1e6);
  return c;
}

int read_window(const Config& config) {
  if (config.is_null("sliding_window"))
    config.reject("sliding_window", "must be a number; some layers slide");
  return config.optional_int("sliding_window", 4096, 1, kMaxPositions);
}

// 0 means no cap, and null in a file does.
double read_cap(const Config& config, const std::string& key, double fallback) {
  if (config.has(key)) return config.required_number(key, 1e-3, kMaxCap);
  return config.is_null(key) ? 0 : fallback;
}

}  // namespace

// Whatever hidden_act says, "gelu" means the approximation by tanh; the first files were published so.
DecoderConfig read_gemma_config(const Config& config) {
  refuse_foreign(config, "Gemma");
  DecoderConfig c = read_decoder_config(config, {.sizes = {256000, 3072, 24576, 28, 16, 8192},
                                                 .num_key_value_heads = 16,
                                                 .head_dim = 256,
                                                 .hidden_act = "gelu_pytorch_tanh",
                                                 .tie_word_embeddings = true});
  if (c.hidden_act == HiddenAct::kGelu) c.hidden_act = HiddenAct::kGeluTanh;
  config.refuse_unless("use_bidirectional_attention");
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

GemmaConfig read_gemma2_config(const Config& config) {
  refuse_foreign(config, "Gemma2", {"sliding_window", "attn_logit_softcapping", "final_logit_softcapping"});
  GemmaConfig c = read_gemma(config, 256'000, 8192);
  const auto every_other = [](int layer, int) { return layer % 2 == 0; };
  c.windows = read_windows(config, c.num_hidden_layers, read_window(config), every_other, 0);
  c.attn_logit_softcapping = read_cap(config, "attn_logit_softcapping", 50.0);
  c.final_logit_softcapping = read_cap(config, "final_logit_softcapping", 30.0);
  c.rope = read_rope(config, c);
  return c;
}

GemmaConfig read_gemma3_config(const Config& config) {
  // In transformers, Gemma 3 has a cap of scores in its configuration but not in the model.
  refuse_foreign(config, "Gemma3", {"sliding_window", "final_logit_softcapping"});
  GemmaConfig c = read_gemma(config, 262'208, 131'072);
  const auto but_every = [](int layer, int pattern) { return (layer + 1) % pattern != 0; };
  c.windows = read_windows(config, c.num_hidden_layers, read_window(config), but_every,
                           config.optional_int("sliding_window_pattern", 6, 1, kMaxLayers));
  c.final_logit_softcapping = read_cap(config, "final_logit_softcapping", 0);
  const RopePlace full{c.max_position_embeddings, c.head_dim, 1'000'000.0};
  const RopePlace local{c.max_position_embeddings, c.head_dim, 10'000.0};
  c.rope = read_layer_rope(config, "full_attention", "rope_theta", full);
  c.local_rope = read_layer_rope(config, "sliding_attention", "rope_local_base_freq", local);
  return c;
}

}  // namespace heddle
