#include "heddle/model/hf/deepseek_config.h"

#include <cmath>

namespace heddle {
namespace {

DeepseekConfig read_deepseek(const Config& config, int first_k_dense_replace) {
  DeepseekConfig c{read_decoder_config(config, {})};
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

  c.head_dim = c.qk_rope_head_dim;  // as transformers has it, whatever the file says
  c.rope = read_rope(config, c);
  c.score_scale =
      c.rope.score_factor * c.rope.score_factor / std::sqrt(double(c.qk_nope_head_dim + c.qk_rope_head_dim));

  c.first_k_dense_replace =
      config.optional_int("first_k_dense_replace", first_k_dense_replace, 0, kMaxLayers);
  if (c.first_k_dense_replace < c.num_hidden_layers)
    config.refuse("first_k_dense_replace", "layers of experts are not computed; it may be num_hidden_layers");
  return c;
}

}  // namespace

DeepseekConfig read_deepseek_v2_config(const Config& config) {
  refuse_foreign(config, "DeepseekV2ForCausalLM");
  DeepseekConfig c = read_deepseek(config, 0);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  return c;
}

DeepseekConfig read_deepseek_v3_config(const Config& config) {
  refuse_foreign(config, "DeepseekV3ForCausalLM");
  DeepseekConfig c = read_deepseek(config, 3);
  c.rope_interleave = config.optional_bool("rope_interleave", true);
  return c;
}

}  // namespace heddle
