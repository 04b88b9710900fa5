// GLM-4.5 and 4.6 (GLM-4.5 Team, 2025): mixtures with the router of DeepSeek V3 and its shared experts, and grouped
// heads of which a part turns.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/glm_config.h"

namespace heddle::glm4_moe {
namespace {

Tensor layer(Builder& b, const Glm4MoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias);
  if (c.use_qk_norm) attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = l < c.experts.first_k_dense_replace ? gated_mlp(b, c, at, h)
                                          : grouped_mixture(b, c.experts, c.hidden_act, at + "mlp.", h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const Glm4MoeConfig c = read_glm4_moe_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "glm4_moe",
                                .doc = "GLM-4.5 and 4.6, mixtures of experts",
                                .supports =
                                    "experts by sigmoid, bias and groups with shared ones, use_qk_norm, "
                                    "partial_rotary_factor, every rope_type, tied embeddings",
                                .refuses = "layers that predict several tokens are not used",
                                .define = define};
  return family;
}

}  // namespace heddle::glm4_moe
