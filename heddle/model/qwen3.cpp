// Qwen 3 (Yang et al., 2025): Llama whose query and key heads are normalised before their rotation.
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/qwen_config.h"

namespace heddle {
namespace {

Tensor layer(Builder& b, const QwenConfig& c, i32 l, Tensor x, Tensor rotary) {
  const std::string at = layer_path(l);
  const Heads heads = heads_of(c);
  const HeadNorms norms{at + "self_attn.q_norm.weight", at + "self_attn.k_norm.weight"};
  const Scores scores{.scale = 1 / std::sqrt(double(heads.dim)), .window = c.windows[size_t(l)]};
  b.in("layers." + std::to_string(l));

  Tensor h = b.rms_norm("input_norm", x, at + "input_layernorm.weight", {c.rms_norm_eps});
  Tensor qkv = b.linear("qkv", h, qkv_rows(at, heads, c.attention_bias));
  qkv = b.head_norm("qk_norm", qkv, norms, heads, {c.rms_norm_eps});
  qkv = b.rope("rope", qkv, rotary, heads, heads.dim);
  Tensor o = b.attend("attention", qkv, l, heads, scores);
  o = b.linear("o", o, rows_of(at + "self_attn.o_proj", c.hidden_size, c.attention_bias));
  x = b.add("attention_residual", o, x);

  h = b.rms_norm("post_norm", x, at + "post_attention_layernorm.weight", {c.rms_norm_eps});
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

void build(Builder& b, const QwenConfig& c) {
  auto [table, x] = embed_tokens(b, c);
  const Tensor rotary = b.rotary("rope", rotary_of(c.rope, c.head_dim));
  for (i32 l = 0; l < c.num_hidden_layers; ++l) x = layer(b, c, l, x, rotary);
  finish(b, c, x, table, {c.rms_norm_eps});
}

Definition define(const Config& config, const Inventory& tensors) {
  const QwenConfig c = read_qwen3_config(config);
  return {info_of(c, tensors, c.windows), [c](Builder& b) { build(b, c); }};
}

}  // namespace

const Family& qwen3_family() {
  static const Family family = {
      .model_type = "qwen3",
      .doc = "Qwen 3, dense",
      .supports =
          "grouped heads, biases of attention, sliding windows by max_window_layers or layer_types, every "
          "rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head, mixtures of experts (model_type qwen3_moe)",
      .define = define};
  return family;
}

}  // namespace heddle
