#include "heddle/model/build/qwen.h"

#include <utility>

#include "heddle/ir/rules.h"
#include "heddle/model/build/mixture.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {
namespace {

Builder::DeltaHeads delta_heads(const QwenHybridConfig& c) {
  return {c.linear_num_key_heads, c.linear_num_value_heads, c.linear_key_head_dim, c.linear_value_head_dim};
}

// The rows of one kind of heads: `count` rows for each of `groups` key heads, from `begin` on in those of a key head.
void take_rows(std::vector<i32>& order, i32 groups, i32 of_group, i32 begin, i32 count) {
  for (i32 group = 0; group < groups; ++group)
    for (i32 i = 0; i < count; ++i) order.push_back(group * of_group + begin + i);
}

// Queries, keys, values and the gates of the result, in this order.
Rows vectors_rows(const QwenHybridConfig& c, const std::string& at) {
  const auto heads = delta_heads(c);
  if (!c.by_key_heads)
    return {.sources = {{at + "in_proj_qkv.weight", heads.columns()},
                        {at + "in_proj_z.weight", heads.value_columns()}}};
  const i32 dim = heads.key_dim, values = heads.value_columns() / heads.keys, all = 2 * (dim + values);
  Rows rows{.sources = {{at + "in_proj_qkvz.weight", heads.keys * all}}};
  for (const auto& [begin, count] :
       {std::pair{0, dim}, {dim, dim}, {2 * dim, values}, {2 * dim + values, values}})
    take_rows(rows.order, heads.keys, all, begin, count);
  return rows;
}

// b and a of all heads, which say how much of a value is written and how long it stays.
Rows gates_rows(const QwenHybridConfig& c, const std::string& at) {
  const auto heads = delta_heads(c);
  if (!c.by_key_heads)
    return {.sources = {{at + "in_proj_b.weight", heads.values}, {at + "in_proj_a.weight", heads.values}}};
  Rows rows{.sources = {{at + "in_proj_ba.weight", 2 * heads.values}}};
  const i32 of_key = heads.values / heads.keys;
  for (const i32 begin : {0, of_key}) take_rows(rows.order, heads.keys, 2 * of_key, begin, of_key);
  return rows;
}

Tensor linear_attention(Builder& b, const QwenHybridConfig& c, const std::string& at, Tensor h) {
  const auto heads = delta_heads(c);
  const Tensor all = b.linear("qkvz", h, vectors_rows(c, at)),
               gates = b.linear("gates", h, gates_rows(c, at));
  const Tensor qkv =
      b.convolve("convolution", columns_of(all, 0, heads.columns()),
                 {.tensor = at + "conv1d.weight", .width = c.linear_conv_kernel_dim, .silu = true});
  Tensor y = b.delta_rule("delta_rule", qkv, gates, at, heads);
  y = b.head_norm("norm", y, {.weights = {{at + "norm.weight", heads.value_dim}}},
                  {.query = heads.values, .kv = 0, .dim = heads.value_dim}, {.eps = c.rms_norm_eps});
  y = b.gated_product("gated", columns_of(all, heads.columns(), heads.value_columns()), y, kSilu);
  return b.linear("o", y, rows_of(at + "out_proj", c.hidden_size));
}

// Each query head's rows are followed by those of its gates.
SelfAttention gated_attention(const QwenHybridConfig& c, i32 l, Tensor table) {
  SelfAttention attention = attention_of(c, l, table);
  const std::string at = layer_path(l) + "self_attn.";
  const auto [heads, kv, dim] = attention.heads;
  Rows queries;
  for (i32 head = 0; head < heads; ++head) {
    const WeightSource query{at + "q_proj.weight", dim, false, 2 * head * dim, 2 * heads * dim};
    queries.sources.push_back(query);
    attention.gate.sources.push_back(query);
    attention.gate.sources.back().begin += dim;
  }
  queries.sources.insert(queries.sources.end(), attention.qkv.sources.begin() + 1,
                         attention.qkv.sources.end());
  attention.qkv = std::move(queries);
  attention.norm = qk_norm(at, attention.heads, QkNorm::Kind::kHead, {.eps = c.rms_norm_eps, .plus = 1});
  return attention;
}

Tensor hybrid_layer(Builder& b, const QwenHybridConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .plus = 1};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = c.linear[size_t(l)] ? linear_attention(b, c, at + "linear_attn.", h)
                          : self_attention(b, gated_attention(c, l, rotary.table), h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = c.sparse[size_t(l)] ? mixture_with_shared_expert(b, c, at, h) : gated_mlp(b, c, at, h);
  return b.add("mlp_residual", h, x);
}

}  // namespace

Tensor mixture_with_shared_expert(Builder& b, const QwenMoeConfig& c, const std::string& at, Tensor h) {
  const std::string mlp = at + "mlp.";
  const Routing routing{
      .count = c.num_experts, .taken = c.num_experts_per_tok, .normalise = c.norm_topk_prob};
  const Tensor chosen = mixture(b, {mlp}, c.moe_intermediate_size, c.hidden_act, routing, h);
  const GatedMlp expert{mlp + "shared_expert.", c.shared_expert_intermediate_size, c.hidden_act};
  const Tensor gate = b.linear("shared_gate", h, rows_of(mlp + "shared_expert_gate", 1));
  return b.sum("experts.all", chosen, b.gate_rows("shared_expert", gated_mlp(b, expert, h), gate));
}

Definition define_qwen_hybrid(const QwenHybridConfig& c, const Inventory& tensors) {
  Definition made = define_decoder(
      c, tensors, {.norm = {.eps = c.rms_norm_eps, .plus = 1}, .layer = layer_of(c, hybrid_layer)});
  made.info.recurrent = std::ranges::find(c.linear, true) != c.linear.end();
  return made;
}

}  // namespace heddle
