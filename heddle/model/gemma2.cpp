// Gemma 2 (Gemma Team, 2024): norms before and after each part, GeGLU, windows in every other layer, caps on scores
// and logits, embeddings scaled by sqrt(hidden_size).
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/gemma_config.h"

namespace heddle {
namespace {

Tensor layer(Builder& b, const GemmaConfig& c, i32 l, Tensor x, Tensor rotary) {
  const std::string at = layer_path(l);
  const Heads heads = heads_of(c);
  const Scores scores{.scale = 1 / std::sqrt(c.query_pre_attn_scalar),
                      .window = c.windows[size_t(l)],
                      .softcap = c.attn_logit_softcapping};
  const Rms rms{.eps = c.rms_norm_eps, .plus = 1};
  b.in("layers." + std::to_string(l));

  Tensor h = b.rms_norm("input_norm", x, at + "input_layernorm.weight", rms);
  Tensor qkv = b.linear("qkv", h, qkv_rows(at, heads, c.attention_bias));
  qkv = b.rope("rope", qkv, rotary, heads, heads.dim);
  Tensor o = b.attend("attention", qkv, l, heads, scores);
  o = b.linear("o", o, rows_of(at + "self_attn.o_proj", c.hidden_size, c.attention_bias));
  o = b.rms_norm("post_attention_norm", o, at + "post_attention_layernorm.weight", rms);
  x = b.add("attention_residual", o, x);

  h = b.rms_norm("pre_mlp_norm", x, at + "pre_feedforward_layernorm.weight", rms);
  h = gated_mlp(b, c, at, h);
  h = b.rms_norm("post_mlp_norm", h, at + "post_feedforward_layernorm.weight", rms);
  return b.add("mlp_residual", h, x);
}

void build(Builder& b, const GemmaConfig& c) {
  auto [table, x] = embed_tokens(b, c, true);
  const Tensor rotary = b.rotary("rope", rotary_of(c.rope, c.head_dim));
  for (i32 l = 0; l < c.num_hidden_layers; ++l) x = layer(b, c, l, x, rotary);
  finish(b, c, x, table, {c.rms_norm_eps, 1}, c.final_logit_softcapping);
}

Definition define(const Config& config, const Inventory& tensors) {
  const GemmaConfig c = read_gemma2_config(config);
  return {info_of(c, tensors, c.windows), [c](Builder& b) { build(b, c); }};
}

}  // namespace

const Family& gemma2_family() {
  static const Family family = {
      .model_type = "gemma2",
      .doc = "Gemma 2",
      .supports =
          "windows by layer_types, both softcaps or none, query_pre_attn_scalar, biases of attention, every "
          "rope_type",
      .refuses = "use_bidirectional_attention, rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle
