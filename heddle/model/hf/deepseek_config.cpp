#include "heddle/model/hf/deepseek_config.h"

#include <cmath>

#include <fmt/format.h>

namespace heddle {
namespace {

DeepseekConfig read_attention(const Config& config, const DecoderDefaults& defaults) {
  DeepseekConfig c{read_decoder_config(config, defaults)};
  if (c.num_key_value_heads != c.num_attention_heads)
    config.reject("num_key_value_heads", "must be num_attention_heads; all heads share one latent");
  if (!config.is_null("q_lora_rank")) c.q_lora_rank = config.optional_int("q_lora_rank", 1536, 1, kMaxWidth);
  c.kv_lora_rank = config.optional_int("kv_lora_rank", 512, 1, kMaxHeadDim);
  c.qk_nope_head_dim = config.optional_int("qk_nope_head_dim", 128, 1, kMaxHeadDim);
  c.qk_rope_head_dim = config.optional_int("qk_rope_head_dim", 64, 2, kMaxHeadDim);
  if (c.qk_rope_head_dim % 2 != 0)
    config.reject("qk_rope_head_dim", "must be even; rotary embeddings turn pairs");
  c.v_head_dim = config.optional_int("v_head_dim", 128, 1, kMaxHeadDim);
  c.attention_bias = config.optional_bool("attention_bias", false);

  c.head_dim = c.qk_rope_head_dim;  // as in transformers, whatever the file says
  c.rope = read_rope(config, c);
  c.score_scale =
      c.rope.score_factor * c.rope.score_factor / std::sqrt(double(c.qk_nope_head_dim + c.qk_rope_head_dim));

  return c;
}

// For keys that a file lacks.
struct ExpertDefaults {
  int dense = 0, routed = 64, shared = 2, taken = 0, inner = 1407, groups = 1, kept = 1;
  double scale = 1;
};

void read_experts(const Config& config, const ExpertDefaults& defaults, DeepseekConfig& c) {
  c.first_k_dense_replace = config.optional_int("first_k_dense_replace", defaults.dense, 0, kMaxLayers);
  config.refuse_unless("moe_layer_freq", {"1"});
  c.n_routed_experts = config.optional_int("n_routed_experts", defaults.routed, 1, kMaxExperts);
  c.n_shared_experts = config.optional_int("n_shared_experts", defaults.shared, 1, kMaxExperts);
  c.moe_intermediate_size =
      config.optional_int("moe_intermediate_size", defaults.inner, 1, kMaxWidth / c.n_shared_experts);
  c.n_group = config.optional_int("n_group", defaults.groups, 1, c.n_routed_experts);
  c.topk_group = config.optional_int("topk_group", defaults.kept, 1, kMaxExperts);
  if (c.n_routed_experts % c.n_group != 0) config.reject("n_group", "must divide n_routed_experts");
  if (c.topk_group > c.n_group) config.reject("topk_group", "must be at most n_group");
  const int choices = c.n_routed_experts / c.n_group * c.topk_group;
  const std::string key = "num_experts_per_tok";
  c.num_experts_per_tok = defaults.taken > 0 ? config.optional_int(key, defaults.taken, 1, choices)
                                             : config.required_int(key, 1, choices);
  c.routed_scaling_factor = config.optional_number("routed_scaling_factor", defaults.scale, 0.0, 1e6);
}

}  // namespace

DeepseekConfig read_deepseek_v2_config(const Config& config) {
  refuse_foreign(config, "DeepseekV2");
  DeepseekConfig c = read_attention(config, {.sizes = {102400, 4096, 11008, 32, 32, 2048}});
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  config.refuse_unless("scoring_func", {"\"softmax\""});
  config.refuse_unless("topk_method", {"\"greedy\"", "\"group_limited_greedy\""});
  config.refuse_unless("norm_topk_prob");  // transformers ignores it
  if (config.optional_int("first_k_dense_replace", 0, 0, kMaxLayers) < c.num_hidden_layers)
    read_experts(config, {}, c);
  else
    c.first_k_dense_replace = c.num_hidden_layers;
  if (config.optional_string("topk_method", "greedy") == "greedy") c.n_group = c.topk_group = 1;
  return c;
}

DeepseekConfig read_deepseek_v3_config(const Config& config) {
  refuse_foreign(config, "DeepseekV3");
  DeepseekConfig c = read_attention(config, {.sizes = {129280, 7168, 18432, 61, 128, 4096}});
  c.rope_interleave = !config.is_null("rope_interleave") && config.optional_bool("rope_interleave", true);
  config.refuse_unless("scoring_func", {"\"sigmoid\""});
  config.refuse_unless("topk_method", {"\"noaux_tc\""});
  c.scores_by_sigmoid = true;
  c.norm_topk_prob = config.optional_bool("norm_topk_prob", true);
  read_experts(config, {3, 256, 1, 8, 2048, 8, 4, 2.5}, c);
  if (c.n_routed_experts / c.n_group < 2)
    config.reject("n_group", "leaves groups of one expert; the scores of a group are its best two");
  return c;
}

}  // namespace heddle
