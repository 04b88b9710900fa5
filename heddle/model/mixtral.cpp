// Mixtral (Jiang et al., 2024): Mistral whose MLP is a mixture of experts.
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/mistral_config.h"

namespace heddle {
namespace {

Tensor layer(Builder& b, const MixtralConfig& c, i32 l, Tensor x, Tensor rotary) {
  const std::string at = layer_path(l);
  const Heads heads = heads_of(c);
  const Scores scores{.scale = 1 / std::sqrt(double(heads.dim)), .window = c.sliding_window};
  const ExpertNames names{at + "block_sparse_moe.", "w1", "w3", "w2"};
  const Routing routing{.count = c.num_local_experts, .taken = c.num_experts_per_tok, .normalise = true};
  b.in("layers." + std::to_string(l));

  Tensor h = b.rms_norm("input_norm", x, at + "input_layernorm.weight", {c.rms_norm_eps});
  Tensor qkv = b.rope("rope", b.linear("qkv", h, qkv_rows(at, heads, false)), rotary, heads, heads.dim);
  Tensor o = b.attend("attention", qkv, l, heads, scores);
  x = b.add("attention_residual", b.linear("o", o, rows_of(at + "self_attn.o_proj", c.hidden_size)), x);

  h = b.rms_norm("post_norm", x, at + "post_attention_layernorm.weight", {c.rms_norm_eps});
  return b.add("mlp_residual", mixture(b, names, c.intermediate_size, c.hidden_act, routing, h), x);
}

void build(Builder& b, const MixtralConfig& c) {
  auto [table, x] = embed_tokens(b, c);
  const Tensor rotary = b.rotary("rope", rotary_of(c.rope, c.head_dim));
  for (i32 l = 0; l < c.num_hidden_layers; ++l) x = layer(b, c, l, x, rotary);
  finish(b, c, x, table, {c.rms_norm_eps});
}

Definition define(const Config& config, const Inventory& tensors) {
  const MixtralConfig c = read_mixtral_config(config);
  return {info_of(c, tensors, std::span(&c.sliding_window, 1)), [c](Builder& b) { build(b, c); }};
}

}  // namespace

const Family& mixtral_family() {
  static const Family family = {
      .model_type = "mixtral",
      .doc = "Mixtral, mixtures of experts",
      .supports =
          "any number of experts, grouped heads, a sliding window or none, every rope_type, tied embeddings",
      .refuses = "layer_types, rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle
