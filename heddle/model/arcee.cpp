// Arcee's AFM (Arcee AI, 2025): Llama with an MLP without gate, whose activation is the square of relu.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_config.h"

namespace heddle::arcee {
namespace {

Tensor layer(Builder& b, const DecoderConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  const PlainMlp mlp{at + "mlp.up_proj", at + "mlp.down_proj", c.intermediate_size, c.hidden_act, c.mlp_bias};

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias), h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", plain_mlp(b, mlp, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const DecoderConfig c = read_arcee_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "arcee",
      .doc = "AFM (Arcee)",
      .supports = "grouped heads, biases of attention and MLP, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::arcee
