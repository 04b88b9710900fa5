// OLMo (Groeneveld et al., 2024: "OLMo: Accelerating the Science of Language Models"): Llama with LayerNorms that have
// no weights, and projections that are kept in range.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/olmo_config.h"

namespace heddle::olmo {
namespace {

Tensor layer(Builder& b, const OlmoConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true, .weights = false};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.clip = c.clip_qkv;

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const OlmoConfig c = read_olmo_config(config);
  return define_decoder(
      c, tensors,
      {.norm = {.eps = c.rms_norm_eps, .centred = true, .weights = false}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "olmo",
      .doc = "OLMo",
      .supports = "clip_qkv, grouped heads, biases of attention, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::olmo
