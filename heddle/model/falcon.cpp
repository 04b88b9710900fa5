// Falcon (Almazrouei et al., 2023: "The Falcon Series"): attention and MLP in parallel, after one LayerNorm or one each,
// and a merged projection. The new architecture has grouped heads, stored group by group.
#include <cmath>
#include <utility>

#include "heddle/model/build/alibi.h"
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/layer_norm_config.h"

namespace heddle::falcon {
namespace {

// The checkpoint stores the queries of a group of heads, then its key and its value, group after group.
Rows merged_rows(const std::string& tensor, const Heads& heads, bool bias) {
  Rows rows = rows_of(tensor, heads.columns(), bias);
  const i32 queries = heads.query / heads.kv;
  const auto add_head = [&](i32 group, i32 head) {
    for (i32 i = 0; i < heads.dim; ++i) rows.order.push_back((group * (queries + 2) + head) * heads.dim + i);
  };
  for (i32 head = 0; head < heads.query; ++head) add_head(head / queries, head % queries);
  for (i32 group = 0; group < heads.kv; ++group) add_head(group, queries);
  for (i32 group = 0; group < heads.kv; ++group) add_head(group, queries + 1);
  return rows;
}

Tensor layer(Builder& b, const FalconConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = "transformer.h." + std::to_string(l) + ".";
  const Heads heads = heads_of(c);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true, .bias = true};
  const SelfAttention attention{
      .layer = l,
      .heads = heads,
      .qkv = merged_rows(at + "self_attention.query_key_value", heads, c.bias),
      .o = rows_of(at + "self_attention.dense", c.hidden_size, c.bias),
      .rotary = rotary.table,
      .scores = {.scale = 1 / std::sqrt(double(heads.dim)), .bias = rotary.score_bias}};
  const PlainMlp mlp{at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h", c.intermediate_size, c.hidden_act,
                     c.bias};

  Tensor h = b.norm("input_norm", x, at + (c.norms == 2 ? "ln_attn" : "input_layernorm"), norm);
  const Tensor after = b.add("attention_residual", self_attention(b, attention, h), x);
  if (c.norms == 2) h = b.norm("mlp_norm", x, at + "ln_mlp", norm);
  if (!c.parallel_attn) h = b.norm("mlp_norm", after, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", plain_mlp(b, mlp, h), after);
}

Definition define(const Config& config, const Inventory& tensors) {
  const FalconConfig c = read_falcon_config(config);
  std::vector<float> bias;
  if (c.alibi) bias = alibi_of(heads_of(c), c.rope.max_positions);
  return define_decoder(c, tensors,
                        {.embedding = "transformer.word_embeddings.weight",
                         .last_norm = "transformer.ln_f",
                         .norm = {.eps = c.rms_norm_eps, .centred = true, .bias = true},
                         .score_bias = std::move(bias),
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "falcon",
                                .doc = "Falcon",
                                .supports =
                                    "both architectures, multi_query, grouped heads, parallel_attn, one or "
                                    "two norms, biases, alibi, every rope_type, tied embeddings",
                                .refuses = "nothing that transformers runs",
                                .define = define,
                                .trunk = {"transformer.", "h."}};
  return family;
}

}  // namespace heddle::falcon
