// Gemma 3, text (Gemma Team, 2025): Gemma 2 with normalised query and key heads for its caps, and layers with a
// window between those that see all positions, each kind with rotary frequencies of its own.
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/gemma_config.h"

namespace heddle {
namespace {

Tensor layer(Builder& b, const GemmaConfig& c, i32 l, Tensor x, Tensor rotary) {
  const std::string at = layer_path(l);
  const Heads heads = heads_of(c);
  const HeadNorms norms{at + "self_attn.q_norm.weight", at + "self_attn.k_norm.weight"};
  const Scores scores{.scale = 1 / std::sqrt(c.query_pre_attn_scalar), .window = c.windows[size_t(l)]};
  const Rms rms{.eps = c.rms_norm_eps, .plus = 1};
  b.in("layers." + std::to_string(l));

  Tensor h = b.rms_norm("input_norm", x, at + "input_layernorm.weight", rms);
  Tensor qkv = b.linear("qkv", h, qkv_rows(at, heads, c.attention_bias));
  qkv = b.head_norm("qk_norm", qkv, norms, heads, rms);
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
  const Tensor far = b.rotary("rope", rotary_of(c.rope, c.head_dim));
  const Tensor near = b.rotary("local_rope", rotary_of(c.local_rope, c.head_dim));
  for (i32 l = 0; l < c.num_hidden_layers; ++l) x = layer(b, c, l, x, c.windows[size_t(l)] > 0 ? near : far);
  finish(b, c, x, table, {c.rms_norm_eps, 1}, c.final_logit_softcapping);
}

Definition define(const Config& config, const Inventory& tensors) {
  const GemmaConfig c = read_gemma3_config(config);
  ModelInfo info = info_of(c, tensors, c.windows);
  if (c.local_rope.max_positions < info.max_positions) {
    info.max_positions = c.local_rope.max_positions;
    info.position_limit = c.local_rope.limit();
  }
  return {info, [c](Builder& b) { build(b, c); }};
}

}  // namespace

const Family& gemma3_family() {
  static const Family family = {
      .model_type = "gemma3_text",
      .doc = "Gemma 3, text",
      .supports =
          "windows by layer_types or sliding_window_pattern, a rope for each kind of layer and of every "
          "rope_type, final_logit_softcapping, query_pre_attn_scalar, biases of attention",
      .refuses =
          "images (model_type gemma3), attn_logit_softcapping, use_bidirectional_attention, rotary "
          "embeddings "
          "of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle
