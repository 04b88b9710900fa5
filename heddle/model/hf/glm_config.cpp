#include "heddle/model/hf/glm_config.h"

namespace heddle {
namespace {

RopeConfig read_half_rope(const Config& config, const DecoderConfig& c) {
  RopePlace place = place_of(c);
  place.partial = 0.5;
  return read_rope(config, place);
}

}  // namespace

DecoderConfig read_glm4_config(const Config& config) {
  refuse_foreign(config, "Glm4");
  DecoderConfig c = read_decoder_config(config, {.sizes = {151552, 4096, 13696, 40, 32, 131072},
                                                 .num_key_value_heads = 2,
                                                 .head_dim = 128,
                                                 .eps = 0.00000015625});
  c.attention_bias = config.optional_bool("attention_bias", true);
  c.rope = read_half_rope(config, c);
  return c;
}

Glm4MoeConfig read_glm4_moe_config(const Config& config) {
  refuse_foreign(config, "Glm4Moe");
  Glm4MoeConfig c{read_decoder_config(
      config, {.sizes = {151552, 4096, 10944, 46, 96, 131072}, .num_key_value_heads = 8, .eps = 1e-5})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.use_qk_norm = config.optional_bool("use_qk_norm", false);
  c.rope = read_half_rope(config, c);
  c.first_k_dense_replace = config.optional_int("first_k_dense_replace", 1, 0, kMaxLayers);
  c.n_routed_experts = config.optional_int("n_routed_experts", 128, 1, kMaxExperts);
  c.n_shared_experts = config.optional_int("n_shared_experts", 1, 1, kMaxExperts);
  c.moe_intermediate_size =
      config.optional_int("moe_intermediate_size", 1408, 1, kMaxWidth / c.n_shared_experts);
  c.n_group = config.optional_int("n_group", 1, 1, c.n_routed_experts / 2);
  c.topk_group = config.optional_int("topk_group", 1, 1, c.n_group);
  if (c.n_routed_experts % c.n_group != 0) config.reject("n_group", "must divide n_routed_experts");
  c.num_experts_per_tok =
      config.optional_int("num_experts_per_tok", 8, 1, c.n_routed_experts / c.n_group * c.topk_group);
  c.routed_scaling_factor = config.optional_number("routed_scaling_factor", 1.0, 0.0, 1e6);
  c.norm_topk_prob = config.optional_bool("norm_topk_prob", true);
  return c;
}

}  // namespace heddle
