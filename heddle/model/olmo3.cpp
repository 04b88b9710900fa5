// OLMo 3 (OLMo Team, 2025): OLMo 2 with a window in three of four layers, which keep their rotary frequencies when
// those of the others are stretched.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/olmo_config.h"

namespace heddle::olmo3 {
namespace {

Tensor layer(Builder& b, const Olmo3Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  const Tensor near_or_far = c.windows[size_t(l)] > 0 ? rotary.other : rotary.table;
  SelfAttention attention = attention_of(c, l, near_or_far, c.attention_bias, c.attention_bias);
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kWhole, norm);

  Tensor h =
      b.norm("post_attention_norm", self_attention(b, attention, x), at + "post_attention_layernorm", norm);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_mlp_norm", gated_mlp(b, c, at, x), at + "post_feedforward_layernorm", norm);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const Olmo3Config c = read_olmo3_config(config);
  return define_decoder(
      c, tensors, {.norm = {.eps = c.rms_norm_eps}, .other_rope = c.local_rope, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "olmo3",
                                .doc = "OLMo 3",
                                .supports =
                                    "windows by layer_types, a rope for each kind of layer and of every "
                                    "rope_type, grouped heads, biases of attention, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::olmo3
