#include "heddle/model/hf/deepseek_config.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

// For keys of the attention that a file lacks.
struct LatentDefaults {
  int query = 1536, plain = 128, value = 128, latent = 512;
};

DeepseekConfig read_attention(const Config& config, const DecoderDefaults& defaults,
                              const LatentDefaults& latent = {}) {
  DeepseekConfig c{read_decoder_config(config, defaults)};
  if (c.num_key_value_heads != c.num_attention_heads)
    config.reject("num_key_value_heads", "must be num_attention_heads; all heads share one latent");
  if (!config.is_null("q_lora_rank"))
    c.q_lora_rank = config.optional_int("q_lora_rank", latent.query, 1, kMaxWidth);
  c.kv_lora_rank = config.optional_int("kv_lora_rank", latent.latent, 1, kMaxHeadDim);
  c.qk_nope_head_dim = config.optional_int("qk_nope_head_dim", latent.plain, 1, kMaxHeadDim);
  c.qk_rope_head_dim = config.optional_int("qk_rope_head_dim", 64, 2, kMaxHeadDim);
  if (c.qk_rope_head_dim % 2 != 0)
    config.reject("qk_rope_head_dim", "must be even; rotary embeddings turn pairs");
  c.v_head_dim = config.optional_int("v_head_dim", latent.value, 1, kMaxHeadDim);
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.head_dim = c.qk_rope_head_dim;  // as in transformers, whatever the file says
  return c;
}

void set_rope(const RopeConfig& rope, DeepseekConfig& c) {
  c.rope = rope;
  c.score_scale =
      rope.score_factor * rope.score_factor / std::sqrt(double(c.qk_nope_head_dim + c.qk_rope_head_dim));
}

DeepseekConfig read_with_rope(const Config& config, const DecoderDefaults& defaults,
                              const LatentDefaults& latent = {}) {
  DeepseekConfig c = read_attention(config, defaults, latent);
  set_rope(read_rope(config, c), c);
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
  DeepseekConfig c = read_with_rope(config, {.sizes = {102400, 4096, 11008, 32, 32, 2048}});
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
                          .scores_by_sigmoid = false,
                          .scores_of_group = 1},
                         c.experts);
  c.experts.first_k_dense_replace = std::min(first, c.num_hidden_layers);
  if (config.optional_string("topk_method", "greedy") == "greedy")
    c.experts.n_group = c.experts.topk_group = 1;
  return c;
}

DeepseekConfig read_deepseek_v3_config(const Config& config) {
  refuse_foreign(config, "DeepseekV3");
  DeepseekConfig c = read_with_rope(config, {.sizes = {129280, 7168, 18432, 61, 128, 4096}});
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
  DeepseekConfig c = read_with_rope(
      config, {.sizes = {154880, 2048, 10240, 47, 20, 202752}, .head_dim = 64, .eps = 1e-5}, {768, 192, 256});
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

// Its rope says of which part of a whole head it is, which must be the part that qk_rope_head_dim says.
DeepseekConfig read_mistral4_config(const Config& config) {
  refuse_foreign(config, "Mistral4", {"num_local_experts"});
  DeepseekConfig c = read_attention(
      config, {.sizes = {131072, 4096, 12288, 36, 32, 1048576}, .head_dim = 128}, {1024, 64, 128, 256});
  RopePlace place = place_of(c);
  place.head_dim = c.qk_nope_head_dim + c.qk_rope_head_dim;
  place.partial = double(c.qk_rope_head_dim) / place.head_dim;
  place.scales_queries = true;
  place.otherwise = R"({"type": "yarn", "rope_theta": 10000.0, "factor": 128.0, "beta_fast": 32.0,
                        "beta_slow": 1.0, "original_max_position_embeddings": 8192, "mscale": 1.0,
                        "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1})";
  set_rope(read_rope(config, place), c);
  if (c.rope.rotary_dim != c.qk_rope_head_dim)
    config.reject("qk_rope_head_dim", "must be the part of a head that partial_rotary_factor says");
  c.query_rope = c.rope;
  c.rope.query_beta = 0;

  c.rope_interleave = !config.is_null("rope_interleave") && config.optional_bool("rope_interleave", true);
  const char* routed = config.has("num_local_experts") ? "num_local_experts" : "n_routed_experts";
  read_grouped_experts(config,
                       {.n_routed_experts = 128,
                        .n_shared_experts = 1,
                        .num_experts_per_tok = 4,
                        .moe_intermediate_size = 2048,
                        .norm_topk_prob = !config.is_null("norm_topk_prob"),
                        .scores_by_sigmoid = false},
                       c.experts, {.routed = routed});
  c.experts.first_k_dense_replace = read_first_with_experts(config, 0);
  return c;
}

}  // namespace heddle
