#include "heddle/model/hf/deepseek_config.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

// For keys of the attention that a file lacks.
struct LatentDefaults {
  int query = 1536, plain = 128, value = 128;
};

DeepseekConfig read_attention(const Config& config, const DecoderDefaults& defaults,
                              const LatentDefaults& latent = {}) {
  DeepseekConfig c{read_decoder_config(config, defaults)};
  if (c.num_key_value_heads != c.num_attention_heads)
    config.reject("num_key_value_heads", "must be num_attention_heads; all heads share one latent");
  if (!config.is_null("q_lora_rank"))
    c.q_lora_rank = config.optional_int("q_lora_rank", latent.query, 1, kMaxWidth);
  c.kv_lora_rank = config.optional_int("kv_lora_rank", 512, 1, kMaxHeadDim);
  c.qk_nope_head_dim = config.optional_int("qk_nope_head_dim", latent.plain, 1, kMaxHeadDim);
  c.qk_rope_head_dim = config.optional_int("qk_rope_head_dim", 64, 2, kMaxHeadDim);
  if (c.qk_rope_head_dim % 2 != 0)
    config.reject("qk_rope_head_dim", "must be even; rotary embeddings turn pairs");
  c.v_head_dim = config.optional_int("v_head_dim", latent.value, 1, kMaxHeadDim);
  c.attention_bias = config.optional_bool("attention_bias", false);

  c.head_dim = c.qk_rope_head_dim;  // as in transformers, whatever the file says
  c.rope = read_rope(config, c);
  c.score_scale =
      c.rope.score_factor * c.rope.score_factor / std::sqrt(double(c.qk_nope_head_dim + c.qk_rope_head_dim));

  return c;
}

int read_first_with_experts(const Config& config, int fallback) {
  return config.optional_int("first_k_dense_replace", fallback, 0, kMaxLayers);
}

// Reads keys that all of these but V2 have.
void read_v3(const Config& config, const GroupedExperts& defaults, DeepseekConfig& c) {
  c.rope_interleave = !config.is_null("rope_interleave") && config.optional_bool("rope_interleave", true);
  config.refuse_unless("scoring_func", {"\"sigmoid\""});
  config.refuse_unless("topk_method", {"\"noaux_tc\""});
  config.refuse_unless("moe_layer_freq", {"1"});
  read_grouped_experts(config, defaults, c.experts);
}

}  // namespace

DeepseekConfig read_deepseek_v2_config(const Config& config) {
  refuse_foreign(config, "DeepseekV2");
  DeepseekConfig c = read_attention(config, {.sizes = {102400, 4096, 11008, 32, 32, 2048}});
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  config.refuse_unless("scoring_func", {"\"softmax\""});
  config.refuse_unless("topk_method", {"\"greedy\"", "\"group_limited_greedy\""});
  config.refuse_unless("norm_topk_prob");  // transformers ignores it
  config.refuse_unless("moe_layer_freq", {"1"});
  const int first = read_first_with_experts(config, 0);
  if (first < c.num_hidden_layers)
    read_grouped_experts(config,
                         {.n_routed_experts = 64,
                          .n_shared_experts = 2,
                          .moe_intermediate_size = 1407,
                          .scores_by_sigmoid = false},
                         c.experts);
  c.experts.first_k_dense_replace = std::min(first, c.num_hidden_layers);
  if (config.optional_string("topk_method", "greedy") == "greedy")
    c.experts.n_group = c.experts.topk_group = 1;
  return c;
}

DeepseekConfig read_deepseek_v3_config(const Config& config) {
  refuse_foreign(config, "DeepseekV3");
  DeepseekConfig c = read_attention(config, {.sizes = {129280, 7168, 18432, 61, 128, 4096}});
  read_v3(config,
          {.n_routed_experts = 256,
           .n_shared_experts = 1,
           .num_experts_per_tok = 8,
           .moe_intermediate_size = 2048,
           .n_group = 8,
           .topk_group = 4,
           .routed_scaling_factor = 2.5,
           .norm_topk_prob = true},
          c);
  c.experts.first_k_dense_replace = read_first_with_experts(config, 3);
  return c;
}

DeepseekConfig read_glm4_moe_lite_config(const Config& config) {
  refuse_foreign(config, "Glm4MoeLite");
  DeepseekConfig c = read_attention(config,
                                    {.sizes = {154880, 2048, 10240, 47, 20, 202752},

                                     .head_dim = 64,
                                     .eps = 1e-5},
                                    {768, 192, 256});
  read_v3(config,
          {.n_routed_experts = 64,
           .n_shared_experts = 1,
           .num_experts_per_tok = 4,
           .moe_intermediate_size = 1536,
           .routed_scaling_factor = 1.8,
           .norm_topk_prob = true},
          c);
  config.refuse_unless("first_k_dense_replace", {"1"});  // transformers reads mlp_layer_types alone
  c.experts.first_k_dense_replace = read_dense_layers(config, c.num_hidden_layers, 1);
  return c;
}

}  // namespace heddle
