// Granite 3 (IBM, 2024): Llama with four multipliers, of embeddings, scores, residuals and logits (Yang et al., 2022:
// "Tensor Programs V").
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/granite_config.h"

namespace heddle::granite {
namespace {

Tensor layer(Builder& b, const GraniteConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.scores.scale = c.attention_multiplier;

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = b.scale("attention_scale", self_attention(b, attention, h), c.residual_multiplier);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = b.scale("mlp_scale", gated_mlp(b, c, at, h, c.mlp_bias), c.residual_multiplier);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const GraniteConfig c = read_granite_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps},
                         .embedding_scale = c.embedding_multiplier,
                         .logits = {.scale = 1 / c.logits_scaling},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "granite",
                                .doc = "Granite 3",
                                .supports =
                                    "its four multipliers, grouped heads, biases of attention and MLP, every "
                                    "rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::granite
