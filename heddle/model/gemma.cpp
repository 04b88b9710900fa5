// Gemma (Gemma Team, 2024): Llama with GeGLU, wide heads, norms that store their weights less one, and embeddings
// scaled by sqrt(hidden_size).
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/gemma_config.h"

namespace heddle::gemma {
namespace {

Tensor layer(Builder& b, const DecoderConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .plus = 1};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias), h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const DecoderConfig c = read_gemma_config(config);
  return define_decoder(
      c, tensors,
      {.norm = {.eps = c.rms_norm_eps, .plus = 1}, .scaled_embedding = true, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "gemma",
      .doc = "Gemma",
      .supports = "biases of attention, every rope_type, tied embeddings",
      .refuses = "use_bidirectional_attention, rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::gemma
