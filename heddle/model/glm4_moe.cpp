// GLM-4.5 and 4.6 (GLM-4.5 Team, 2025): mixtures with the router of DeepSeek V3 and its shared experts, and grouped
// heads of which a part turns.
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/glm_config.h"

namespace heddle::glm4_moe {
namespace {

Tensor layer(Builder& b, const Glm4MoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias);
  if (c.use_qk_norm)
    attention.norm = qk_norm(layer_path(l) + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);
  return grouped_layer(b, c, c.experts, l, x, attention);
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
