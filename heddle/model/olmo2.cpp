// OLMo 2 (OLMo Team, 2024: "2 OLMo 2 Furious"): norms after each part and not before it, queries and keys normalised
// as whole rows.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/olmo_config.h"

namespace heddle::olmo2 {
namespace {

Tensor layer(Builder& b, const DecoderConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kWhole, norm);

  Tensor h =
      b.norm("post_attention_norm", self_attention(b, attention, x), at + "post_attention_layernorm", norm);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_mlp_norm", gated_mlp(b, c, at, x), at + "post_feedforward_layernorm", norm);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const DecoderConfig c = read_olmo2_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "olmo2",
      .doc = "OLMo 2",
      .supports = "grouped heads, biases of attention, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::olmo2
