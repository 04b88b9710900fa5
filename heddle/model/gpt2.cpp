// GPT-2 (Radford et al., 2019): LayerNorm, learned positions, full heads, GELU. Its matrices are stored
// [in, out].
#include "heddle/model/build/activations.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/gpt2_config.h"

namespace heddle::gpt2 {
namespace {

Rows rows(const std::string& name, i32 count) {
  return {.sources = {{name + ".weight", count, true}}, .biases = {name + ".bias"}};
}

Tensor layer(Builder& b, const Gpt2Config& c, i32 l, Tensor x) {
  const std::string at = "transformer.h." + std::to_string(l) + ".";
  const Heads heads{c.n_head, c.n_head, c.n_embd / c.n_head};
  b.in("layers." + std::to_string(l));

  Tensor h = b.layer_norm("norm_1", x, at + "ln_1.weight", at + "ln_1.bias", {c.layer_norm_epsilon});
  Tensor qkv = b.linear("qkv", h, rows(at + "attn.c_attn", heads.columns()));
  Tensor o = b.attend("attention", qkv, l, heads, {.scale = c.attention_scale(l)});
  x = b.add("attention_residual", b.linear("o", o, rows(at + "attn.c_proj", c.n_embd)), x);

  h = b.layer_norm("norm_2", x, at + "ln_2.weight", at + "ln_2.bias", {c.layer_norm_epsilon});
  h = b.activate("act", b.linear("up", h, rows(at + "mlp.c_fc", c.n_inner)),
                 activation_kind(c.activation_function));
  return b.add("mlp_residual", b.linear("down", h, rows(at + "mlp.c_proj", c.n_embd)), x);
}

void build(Builder& b, const Gpt2Config& c, const std::string& embedding) {
  const Weight tokens = b.table("embed", embedding, c.vocab_size, c.n_embd);
  const Weight positions = b.table("positions", "transformer.wpe.weight", c.n_positions, c.n_embd);
  b.in("");
  Tensor x =
      b.residual(b.add("embedding", b.embed("token", tokens), b.embed_positions("position", positions)));
  for (i32 l = 0; l < c.n_layer; ++l) x = layer(b, c, l, x);
  b.in("");
  x = b.layer_norm("final_norm", b.wanted(x), "transformer.ln_f.weight", "transformer.ln_f.bias",
                   {c.layer_norm_epsilon});
  b.head(x, b.head_table(tokens, "lm_head.weight", c.tie_word_embeddings));
}

Definition define(const Config& config, const Inventory& tensors) {
  const Gpt2Config c = read_gpt2_config(config);
  const std::string embedding =
      embedding_of(tensors, "transformer.wte.weight", "lm_head.weight", c.tie_word_embeddings);
  ModelInfo info{.vocab = c.vocab_size,
                 .max_positions = c.n_positions,
                 .layers = c.n_layer,
                 .kv_heads = c.n_head,
                 .head_dim = c.n_embd / c.n_head,
                 .weight_dtype = tensors.dtype(embedding)};
  return {info, [c, embedding](Builder& b) { build(b, c, embedding); }};
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "gpt2",
      .doc = "GPT-2",
      .supports = "scale_attn_weights, scale_attn_by_inverse_layer_idx, tied embeddings",
      .refuses = "cross attention, pruned heads",
      .define = define,
      .trunk = {"transformer.", "h."}};
  return family;
}

}  // namespace heddle::gpt2
