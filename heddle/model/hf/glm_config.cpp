#include "heddle/model/hf/glm_config.h"

namespace heddle {
namespace {

RopeConfig read_half_rope(const Config& config, const DecoderConfig& c) {
  RopePlace place = place_of(c);
  place.partial = 0.5;
  return read_rope(config, place);
}

// GLM-4 of either year; `family` is its class.
GlmConfig read_glm(const Config& config, const char* family) {
  refuse_foreign(config, family);
  GlmConfig c{read_decoder_config(config, {.sizes = {151552, 4096, 13696, 40, 32, 131072},
                                           .num_key_value_heads = 2,
                                           .head_dim = 128,
                                           .eps = 0.00000015625})};
  c.attention_bias = config.optional_bool("attention_bias", true);
  c.rope = read_half_rope(config, c);
  return c;
}

}  // namespace

GlmConfig read_glm_config(const Config& config) {
  return read_glm(config, "Glm");
}

GlmConfig read_glm4_config(const Config& config) {
  GlmConfig c = read_glm(config, "Glm4");
  c.norms_outputs = true;
  return c;
}

Glm4MoeConfig read_glm4_moe_config(const Config& config) {
  refuse_foreign(config, "Glm4Moe");
  Glm4MoeConfig c{read_decoder_config(
      config, {.sizes = {151552, 4096, 10944, 46, 96, 131072}, .num_key_value_heads = 8, .eps = 1e-5})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.use_qk_norm = config.optional_bool("use_qk_norm", false);
  c.rope = read_half_rope(config, c);
  read_grouped_experts(config,
                       {.n_routed_experts = 128,
                        .n_shared_experts = 1,
                        .num_experts_per_tok = 8,
                        .moe_intermediate_size = 1408,
                        .norm_topk_prob = true},
                       c.experts);
  c.experts.first_k_dense_replace = config.optional_int("first_k_dense_replace", 1, 0, kMaxLayers);
  return c;
}

}  // namespace heddle
