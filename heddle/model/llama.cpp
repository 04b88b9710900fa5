// Llama 2 and 3 (Touvron et al., 2023; Grattafiori et al., 2024): RMSNorm, rotary positions, grouped heads,
// SwiGLU.
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_config.h"

namespace heddle {
namespace {

Tensor layer(Builder& b, const LlamaConfig& c, i32 l, Tensor x, Tensor rotary) {
  const std::string at = layer_path(l);
  const Heads heads = heads_of(c);
  b.in("layers." + std::to_string(l));

  Tensor h = b.rms_norm("input_norm", x, at + "input_layernorm.weight", {c.rms_norm_eps});
  Tensor qkv = b.linear("qkv", h, qkv_rows(at, heads, c.attention_bias));
  qkv = b.rope("rope", qkv, rotary, heads, heads.dim);
  Tensor o = b.attend("attention", qkv, l, heads, {.scale = 1 / std::sqrt(double(heads.dim))});
  o = b.linear("o", o, rows_of(at + "self_attn.o_proj", c.hidden_size, c.attention_bias));
  x = b.add("attention_residual", o, x);

  h = b.rms_norm("post_norm", x, at + "post_attention_layernorm.weight", {c.rms_norm_eps});
  return b.add("mlp_residual", gated_mlp(b, c, at, h, c.mlp_bias), x);
}

void build(Builder& b, const LlamaConfig& c) {
  auto [table, x] = embed_tokens(b, c);
  const Tensor rotary = b.rotary("rope", rotary_of(c.rope, c.head_dim));
  for (i32 l = 0; l < c.num_hidden_layers; ++l) x = layer(b, c, l, x, rotary);
  finish(b, c, x, table, {c.rms_norm_eps});
}

Definition define(const Config& config, const Inventory& tensors) {
  const LlamaConfig c = read_llama_config(config);
  return {info_of(c, tensors), [c](Builder& b) { build(b, c); }};
}

}  // namespace

const Family& llama_family() {
  static const Family family = {
      .model_type = "llama",
      .doc = "Llama 2 and 3",
      .supports = "grouped heads, biases of attention and MLP, every rope_type, tied embeddings",
      .refuses = "sliding windows, pretraining_tp above 1, rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle
