#include "heddle/model/build/decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heddle/ir/rules.h"
#include "heddle/model/build/activations.h"

namespace heddle {
namespace {

Rows stack(const std::string& at, const std::vector<std::pair<const char*, i32>>& names, bool bias) {
  Rows result;
  for (const auto& [name, count] : names) {
    result.sources.push_back({at + name + ".weight", count});
    if (bias) result.biases.push_back(at + name + ".bias");
  }
  return result;
}

// Pairs each gate row with its up row.
Rows gate_up_rows(const GatedMlp& mlp) {
  Rows rows = *mlp.merged ? rows_of(mlp.at + mlp.merged, 2 * mlp.inner, mlp.bias)
                          : stack(mlp.at, {{mlp.gate, mlp.inner}, {mlp.up, mlp.inner}}, mlp.bias);
  rows.order = interleave_halves(mlp.inner);
  return rows;
}

// Row i is row order[i] of `rows`.
void reorder(Rows& rows, const std::vector<i32>& order) {
  std::vector<i32> result = order;
  if (!rows.order.empty())
    for (i32& row : result) row = rows.order[size_t(row)];
  if (!order.empty()) rows.order = std::move(result);
}

HeadNorms head_norms(const QkNorm& norm, const std::vector<i32>& order) {
  return {.weights = norm.weights,
          .biases = norm.biases,
          .each = norm.kind == QkNorm::Kind::kEachHead,
          .centred = norm.norm.centred,
          .order = order};
}

ModelInfo info_of(const DecoderConfig& c, const Inventory& tensors, const std::string& embedding) {
  const std::vector<int>& windows = c.windows;
  const bool all_slide = !windows.empty() && std::ranges::find(windows, 0) == windows.end();
  return {.vocab = c.vocab_size,
          .max_positions = c.rope.max_positions,
          .short_positions = c.rope.short_positions(),
          .position_limit = c.rope.limit(),
          .layers = c.num_hidden_layers,
          .kv_heads = c.num_key_value_heads,
          .head_dim = c.head_dim,
          .window = all_slide ? std::ranges::max(windows) : 0,
          .weight_dtype = tensors.dtype(embedding)};
}

// Attention whose queries and keys are changed apart from each other, and from the values.
Tensor attend_apart(Builder& b, const SelfAttention& a, i32 rotary_dim, const std::vector<i32>& order,
                    Tensor qkv) {
  const Heads& heads = a.heads;
  const i32 keys = heads.key_column(), values = heads.value_column(), width = heads.kv * heads.dim;
  Tensor q = columns_of(qkv, 0, keys), k = columns_of(qkv, keys, width), v = columns_of(qkv, values, width);
  if (a.norm.kind == QkNorm::Kind::kWhole) {
    const Rms rms{a.norm.norm.eps, a.norm.norm.plus};
    std::vector<i32> of_q, of_k;
    if (!order.empty()) of_q.assign(order.begin(), order.begin() + keys);
    if (!order.empty()) of_k.assign(order.begin() + keys, order.begin() + values);
    for (i32& row : of_k) row -= keys;
    q = b.rms_norm("q_norm", q, a.norm.weights[0].tensor, rms, of_q);
    k = b.rms_norm("k_norm", k, a.norm.weights[1].tensor, rms, of_k);
  }
  if (a.clip > 0)
    q = b.clamp("q_clip", q, a.clip), k = b.clamp("k_clip", k, a.clip), v = b.clamp("v_clip", v, a.clip);
  if (a.rotary.exists()) {
    const Tensor table = a.query_rotary.exists() ? a.query_rotary : a.rotary;
    q = b.rope("query_rope", q, table, {.query = heads.query, .kv = 0, .dim = heads.dim}, rotary_dim);
    k = b.rope("key_rope", k, a.rotary, {.query = 0, .kv = heads.kv, .dim = heads.dim}, rotary_dim);
  }
  q = b.gain("query_gain", q, a.gains);
  const KvPages pages = b.pages(a.layer, heads.kv, heads.dim, heads.dim);
  b.append("append_keys", k, pages.keys);
  if (a.clip > 0)
    b.append("append_values", v, pages.values);
  else
    b.append("append_values", qkv, pages.values, values);
  const AttentionRows rows{.q = q, .k = k, .v = v, .latent = {}};
  return b.attend("attention", rows, pages, a.scores);
}

}  // namespace

std::string layer_path(i32 layer) {
  return "model.layers." + std::to_string(layer) + ".";
}

Heads heads_of(const DecoderConfig& c) {
  return {c.num_attention_heads, c.num_key_value_heads, c.head_dim};
}

Rows qkv_rows(const std::string& at, const Heads& heads, bool bias) {
  const i32 kv = heads.kv * heads.dim;
  return stack(at + "self_attn.", {{"q_proj", heads.query * heads.dim}, {"k_proj", kv}, {"v_proj", kv}},
               bias);
}

Rows rows_of(const std::string& tensor, i32 count, bool bias) {
  return stack(tensor, {{"", count}}, bias);
}

QkNorm qk_norm(const std::string& at, const Heads& heads, QkNorm::Kind kind, const Norm& norm,
               const char* what) {
  const bool one = kind == QkNorm::Kind::kHead;
  const auto sources = [&](const char* part) -> std::vector<WeightSource> {
    return {{at + "q_" + what + part, heads.dim * (one ? 1 : heads.query)},
            {at + "k_" + what + part, heads.dim * (one ? 1 : heads.kv)}};
  };
  QkNorm made{.kind = kind, .weights = sources(".weight"), .norm = norm};
  if (norm.bias) made.biases = sources(".bias");
  return made;
}

SelfAttention attention_of(const DecoderConfig& c, i32 layer, Tensor rotary, bool qkv_bias, bool o_bias) {
  const Heads heads = heads_of(c);
  const std::string at = layer_path(layer);
  return {.layer = layer,
          .heads = heads,
          .qkv = qkv_rows(at, heads, qkv_bias),
          .o = rows_of(at + "self_attn.o_proj", c.hidden_size, o_bias),
          .gate = {},
          .rotary = rotary,
          .query_rotary = {},
          .rotary_dim = c.rope.rotary_dim,
          .norm = {},
          .scores = {.scale = 1 / std::sqrt(double(heads.dim)),
                     .window = c.windows.empty() ? 0 : c.windows[size_t(layer)]}};
}

Tensor self_attention(Builder& b, const SelfAttention& a, Tensor h) {
  const Heads& heads = a.heads;
  const i32 turned = heads.query + heads.kv, rotary_dim = a.rotary_dim > 0 ? a.rotary_dim : heads.dim;
  std::vector<i32> order;
  if (a.rotary.exists() && !a.neighbours)
    order = pair_rotary_rows(heads.columns(), turned, heads.dim, rotary_dim);
  Rows rows = a.qkv;
  reorder(rows, order);

  const auto project = [&](Tensor y) {
    if (!a.gate.sources.empty()) y = b.gated_product("gated", b.linear("head_gates", h, a.gate), y, kSigmoid);
    return b.linear("o", y, a.o);
  };
  Tensor qkv = b.linear("qkv", h, rows);
  if (a.norm.kind == QkNorm::Kind::kWhole || a.query_rotary.exists() || !a.gains.values.empty())
    return project(attend_apart(b, a, rotary_dim, order, qkv));
  const auto normalise = [&] {
    qkv = b.head_norm("qk_norm", qkv, head_norms(a.norm, order), heads, {a.norm.norm.eps, a.norm.norm.plus});
  };
  const bool has_norm = a.norm.kind != QkNorm::Kind::kNone;
  if (has_norm && !a.norm.after_rope) normalise();
  if (a.clip > 0) qkv = b.clamp("clip", qkv, a.clip);
  if (a.rotary.exists()) qkv = b.rope("rope", qkv, a.rotary, heads, rotary_dim);
  if (has_norm && a.norm.after_rope) normalise();
  return project(b.attend("attention", qkv, a.layer, heads, a.scores));
}

Tensor gated_mlp(Builder& b, const DecoderConfig& c, const std::string& at, Tensor h, bool bias) {
  return gated_mlp(b, {at + "mlp.", c.intermediate_size, c.hidden_act, bias}, h);
}

Tensor gated_mlp(Builder& b, const GatedMlp& mlp, Tensor h) {
  const i32 hidden = h.last();
  h = b.linear("gate_up", h, gate_up_rows(mlp));
  h = b.gate("gate", h, activation_kind(mlp.act));
  return b.linear("down", h, rows_of(mlp.at + mlp.down, hidden, mlp.bias));
}

Tensor plain_mlp(Builder& b, const PlainMlp& mlp, Tensor h) {
  const i32 hidden = h.last();
  h = b.activate("act", b.linear("up", h, rows_of(mlp.up, mlp.inner, mlp.bias)), activation_kind(mlp.act));
  return b.linear("down", h, rows_of(mlp.down, hidden, mlp.bias));
}

Definition define_decoder(const DecoderConfig& c, const Inventory& tensors, DecoderModel model) {
  const std::string head_weight = std::string(model.head) + ".weight";
  const std::string embedding = embedding_of(tensors, model.embedding, head_weight, c.tie_word_embeddings);
  ModelInfo info = info_of(c, tensors, embedding);
  if (const auto& other = model.other_rope) {
    if (info.position_limit.empty()) info.position_limit = other->limit();
    info.max_positions = std::min(info.max_positions, other->max_positions);
    info.short_positions = std::min(info.short_positions, other->short_positions());
  }
  return {info, [c, embedding, head_weight, model = std::move(model)](Builder& b) {
            const Weight table = b.table("embed", embedding, c.vocab_size, c.hidden_size);
            const double root = std::sqrt(double(c.hidden_size));
            const double scale = model.scaled_embedding ? double(round_to(table.data.dtype, float(root)))
                                                        : model.embedding_scale;
            Tensor x = b.in("").embed("embedding", table, scale);
            if (model.adds_only) x = b.residual(x);
            const auto rotary_for = [&](const char* name, const RopeConfig& rope) {
              return b.rotary(name, rotary_of(rope, rope.rotary_dim, b.context()), query_gains(rope));
            };
            Rotaries rotary;
            if (model.score_bias.empty())
              rotary.table = rotary_for("rope", c.rope);
            else
              rotary.score_bias = b.score_bias("score_bias", model.score_bias, c.num_attention_heads);
            if (model.other_rope) rotary.other = rotary_for(model.other_name, *model.other_rope);
            const LayerOfGraph layer = model.layers ? model.layers() : model.layer;
            for (i32 l = 0; l < c.num_hidden_layers; ++l)
              x = layer(b.in("layers." + std::to_string(l)), l, x, rotary);
            x = b.in("").norm("final_norm", b.wanted(x), model.last_norm, model.norm);
            b.head(x, b.head_table(table, head_weight, c.tie_word_embeddings), model.logits);
          }};
}

}  // namespace heddle
