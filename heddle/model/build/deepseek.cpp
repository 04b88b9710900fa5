// Multi-head latent attention (DeepSeek-AI, 2024: "DeepSeek-V2", section 2.1) in its absorbed form. For each
// position the pages hold the latent c, from which a head's keys and values are W_uk c and W_uv c, and one
// rotated key that all heads share. A score q (W_uk c) equals (q W_uk) c: attention takes scores against
// latents, and the weighted sum of latents then passes through W_uv.
#include "heddle/model/build/deepseek.h"

#include "heddle/ir/rules.h"
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"

namespace heddle {
namespace {

constexpr Rms kLatentRms{.eps = 1e-6};  // whatever rms_norm_eps is

// Adds the rows of a rotated part of a head or of the key, from row `first` on, with partners adjacent.
void add_rotated(std::vector<i32>& order, const DeepseekConfig& c, i32 first) {
  const i32 dim = c.qk_rope_head_dim;
  for (i32 i = 0; i < dim; ++i) order.push_back(first + (c.rope_interleave ? i : i / 2 + i % 2 * (dim / 2)));
}

void add_range(std::vector<i32>& order, i32 first, i32 count) {
  for (i32 i = 0; i < count; ++i) order.push_back(first + i);
}

// The rotated parts of all heads come first, then the others.
std::vector<i32> query_order(const DeepseekConfig& c) {
  const i32 dim = c.qk_nope_head_dim + c.qk_rope_head_dim;
  std::vector<i32> order;
  for (i32 head = 0; head < c.num_attention_heads; ++head)
    add_rotated(order, c, head * dim + c.qk_nope_head_dim);
  for (i32 head = 0; head < c.num_attention_heads; ++head) add_range(order, head * dim, c.qk_nope_head_dim);
  return order;
}

// The rotated key, the latent of keys and values, and the latent of queries if there is one.
Rows latent_rows(const DeepseekConfig& c, const std::string& at) {
  Rows rows = rows_of(at + "kv_a_proj_with_mqa", c.kv_lora_rank + c.qk_rope_head_dim, c.attention_bias);
  add_rotated(rows.order, c, c.kv_lora_rank);
  add_range(rows.order, 0, c.kv_lora_rank);
  if (c.q_lora_rank == 0) return rows;
  const Rows more = rows_of(at + "q_a_proj", c.q_lora_rank, c.attention_bias);
  add_range(rows.order, c.kv_lora_rank + c.qk_rope_head_dim, c.q_lora_rank);
  rows.sources.insert(rows.sources.end(), more.sources.begin(), more.sources.end());
  rows.biases.insert(rows.biases.end(), more.biases.begin(), more.biases.end());
  return rows;
}

// W_uk of each head, transposed, or W_uv. The checkpoint stacks both for each head.
Rows absorbed_rows(const DeepseekConfig& c, const std::string& at, bool keys) {
  const i32 dim = c.qk_nope_head_dim + c.v_head_dim;
  Rows rows;
  for (i32 head = 0; head < c.num_attention_heads; ++head)
    rows.sources.push_back({.tensor = at + "kv_b_proj.weight",
                            .rows = keys ? c.kv_lora_rank : c.v_head_dim,
                            .transposed = keys,
                            .begin = head * dim + (keys ? 0 : c.qk_nope_head_dim),
                            .all = c.num_attention_heads * dim});
  return rows;
}

Tensor queries(Builder& b, const DeepseekConfig& c, const std::string& at, Tensor h, Tensor latents) {
  const i32 rows = c.num_attention_heads * (c.qk_nope_head_dim + c.qk_rope_head_dim);
  const bool direct = c.q_lora_rank == 0;
  Rows matrix = rows_of(at + (direct ? "q_proj" : "q_b_proj"), rows);
  matrix.order = query_order(c);
  if (direct) return b.linear("q", h, matrix);
  const Tensor latent = columns_of(latents, c.qk_rope_head_dim + c.kv_lora_rank, c.q_lora_rank);
  return b.linear("q", b.rms_norm("q_norm", latent, at + "q_a_layernorm.weight", kLatentRms), matrix);
}

Tensor attention(Builder& b, const DeepseekConfig& c, i32 l, Tensor h, Tensor rotary) {
  const std::string at = layer_path(l) + "self_attn.";
  const i32 heads = c.num_attention_heads, turned = c.qk_rope_head_dim;
  const KvPages pages = b.pages(l, 1, turned, c.kv_lora_rank);

  Tensor latents = b.linear("latents", h, latent_rows(c, at));
  latents = b.rope("key_rope", latents, rotary, {.query = 0, .kv = 1, .dim = turned}, turned);
  b.append("append_key", latents, pages.keys);
  Tensor q = b.gain("query_gain", queries(b, c, at, h, latents), query_gains(c.query_rope));
  q = b.rope("query_rope", q, rotary, {.query = heads, .kv = 0, .dim = turned}, turned);
  const Tensor latent = b.rms_norm("latent_norm", columns_of(latents, turned, c.kv_lora_rank),
                                   at + "kv_a_layernorm.weight", kLatentRms);
  b.append("append_latent", latent, pages.values);

  const Tensor plain = columns_of(q, heads * turned, heads * c.qk_nope_head_dim);
  const AttentionRows rows{.q = columns_of(q, 0, heads * turned),
                           .k = columns_of(latents, 0, turned),
                           .v = latent,
                           .latent = b.head_linear("absorb_keys", plain, absorbed_rows(c, at, true), heads)};
  Tensor o = b.attend("attention", rows, pages, {.scale = c.score_scale});
  o = b.head_linear("values", o, absorbed_rows(c, at, false), heads);
  return b.linear("o", o, rows_of(at + "o_proj", c.hidden_size, c.attention_bias));
}

Tensor layer(Builder& b, const DeepseekConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  Tensor h = b.rms_norm("input_norm", x, at + "input_layernorm.weight", {c.rms_norm_eps});
  x = b.add("attention_residual", attention(b, c, l, h, rotary.table), x);
  h = b.rms_norm("post_norm", x, at + "post_attention_layernorm.weight", {c.rms_norm_eps});
  const bool has_experts = l >= c.experts.first_k_dense_replace;
  h = has_experts ? grouped_mixture(b, c.experts, c.hidden_act, at + "mlp.", h, c.mlp_bias)
                  : gated_mlp(b, c, at, h, c.mlp_bias);
  return b.add("mlp_residual", h, x);
}

}  // namespace

Definition define_deepseek(const DeepseekConfig& c, const Inventory& tensors) {
  Definition made =
      define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
  made.info.kv_heads = 1;
  made.info.head_dim = c.kv_lora_rank + c.qk_rope_head_dim;
  return made;
}

}  // namespace heddle
