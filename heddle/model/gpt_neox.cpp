// GPT-NeoX (Black et al., 2022), Pythia and Dolly: LayerNorm, attention and MLP in parallel with a norm each, a merged
// projection with the parts of a head next to each other, of which a quarter turns.
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/layer_norm_config.h"

namespace heddle::gpt_neox {
namespace {

// The checkpoint stores query, key and value of one head after another.
Rows merged_rows(const std::string& tensor, const Heads& heads, bool bias) {
  Rows rows = rows_of(tensor, heads.columns(), bias);
  for (i32 part = 0; part < 3; ++part)
    for (i32 head = 0; head < heads.query; ++head)
      for (i32 i = 0; i < heads.dim; ++i) rows.order.push_back((3 * head + part) * heads.dim + i);
  return rows;
}

Tensor layer(Builder& b, const GptNeoxConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = "gpt_neox.layers." + std::to_string(l) + ".";
  const Heads heads = heads_of(c);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true, .bias = true};
  const SelfAttention attention{.layer = l,
                                .heads = heads,
                                .qkv = merged_rows(at + "attention.query_key_value", heads, c.attention_bias),
                                .o = rows_of(at + "attention.dense", c.hidden_size, c.attention_bias),
                                .rotary = rotary.table,
                                .rotary_dim = c.rope.rotary_dim,
                                .scores = {.scale = 1 / std::sqrt(double(heads.dim))}};
  const PlainMlp mlp{at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h", c.intermediate_size, c.hidden_act,
                     true};

  const Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  const Tensor after = b.add("attention_residual", self_attention(b, attention, h), x);
  const Tensor in = c.use_parallel_residual ? x : after;
  return b.add("mlp_residual",
               plain_mlp(b, mlp, b.norm("post_norm", in, at + "post_attention_layernorm", norm)), after);
}

Definition define(const Config& config, const Inventory& tensors) {
  const GptNeoxConfig c = read_gpt_neox_config(config);
  return define_decoder(c, tensors,
                        {.embedding = "gpt_neox.embed_in.weight",
                         .last_norm = "gpt_neox.final_layer_norm",
                         .head = tensors.has("embed_out.weight") ? "embed_out" : "lm_head",
                         .norm = {.eps = c.rms_norm_eps, .centred = true, .bias = true},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "gpt_neox",
      .doc = "GPT-NeoX, Pythia, Dolly",
      .supports = "rotary_pct, use_parallel_residual, attention_bias, every rope_type, tied embeddings",
      .refuses = "grouped heads",
      .define = define,
      .trunk = {"gpt_neox.", "layers."}};
  return family;
}

}  // namespace heddle::gpt_neox
