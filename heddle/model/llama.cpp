// Llama 2 and 3 (Touvron et al., 2023; Grattafiori et al., 2024): RMSNorm, rotary positions, grouped heads,
// SwiGLU.
#include <cmath>

#include "heddle/model/build/activations.h"
#include "heddle/model/build/family.h"
#include "heddle/model/build/rotary.h"
#include "heddle/model/hf/llama_config.h"

namespace heddle {
namespace {

// The projections `names` of a layer, one below the other.
Rows rows(const std::string& at, const std::vector<std::pair<std::string, i32>>& names, bool bias) {
  Rows result;
  for (const auto& [name, count] : names) {
    result.sources.push_back({at + name + ".weight", count});
    if (bias) result.biases.push_back(at + name + ".bias");
  }
  return result;
}

Tensor layer(Builder& b, const LlamaConfig& c, i32 l, Tensor x, Tensor rotary) {
  const std::string at = "model.layers." + std::to_string(l) + ".";
  const Heads heads{c.num_attention_heads, c.num_key_value_heads, c.head_dim};
  b.in("layers." + std::to_string(l));

  Tensor h = b.rms_norm("input_norm", x, at + "input_layernorm.weight", c.rms_norm_eps);
  Rows qkv_rows = rows(at + "self_attn.",
                       {{"q_proj", heads.query * heads.dim},
                        {"k_proj", heads.kv * heads.dim},
                        {"v_proj", heads.kv * heads.dim}},
                       c.attention_bias);
  qkv_rows.order = pair_rotary_rows(heads.columns(), heads.query + heads.kv, heads.dim, heads.dim);
  Tensor qkv = b.linear("qkv", h, qkv_rows);
  qkv = b.rope("rope", qkv, rotary, heads, heads.dim);
  Tensor o = b.attend("attention", qkv, l, heads, 1 / std::sqrt(double(heads.dim)));
  o = b.linear("o", o, rows(at + "self_attn.", {{"o_proj", c.hidden_size}}, c.attention_bias));
  x = b.add("attention_residual", o, x);

  h = b.rms_norm("post_norm", x, at + "post_attention_layernorm.weight", c.rms_norm_eps);
  Rows gate_up =
      rows(at + "mlp.", {{"gate_proj", c.intermediate_size}, {"up_proj", c.intermediate_size}}, c.mlp_bias);
  gate_up.order = interleave_halves(c.intermediate_size);
  h = b.gate("gate", b.linear("gate_up", h, gate_up), activation_kind(c.hidden_act));
  h = b.linear("down", h, rows(at + "mlp.", {{"down_proj", c.hidden_size}}, c.mlp_bias));
  return b.add("mlp_residual", h, x);
}

void build(Builder& b, const LlamaConfig& c) {
  const Weight embed = b.table("embed", "model.embed_tokens.weight", c.vocab_size, c.hidden_size);
  Tensor x = b.in("").residual(b.embed("embedding", embed));
  const Tensor rotary = b.rotary(inverse_frequencies(c.rope, c.head_dim));
  for (i32 l = 0; l < c.num_hidden_layers; ++l) x = layer(b, c, l, x, rotary);
  x = b.in("").rms_norm("final_norm", b.wanted(x), "model.norm.weight", c.rms_norm_eps);
  b.head(x, c.tie_word_embeddings ? embed
                                  : b.table("head.weight", "lm_head.weight", c.vocab_size, c.hidden_size));
}

Definition define(const Config& config, const Inventory& tensors) {
  const LlamaConfig c = read_llama_config(config);
  ModelInfo info{.vocab = c.vocab_size,
                 .max_positions = c.max_position_embeddings,
                 .layers = c.num_hidden_layers,
                 .kv_heads = c.num_key_value_heads,
                 .head_dim = c.head_dim,
                 .weight_dtype = tensors.dtype("model.embed_tokens.weight")};
  return {info, [c](Builder& b) { build(b, c); }};
}

}  // namespace

const Family& llama_family() {
  static const Family family = {"llama", "Llama 2 and 3", define};
  return family;
}

}  // namespace heddle
