#include "heddle/model/build/decoder.h"

#include <algorithm>
#include <cmath>

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
Rows gate_up_rows(const std::string& at, i32 inner, bool bias) {
  Rows rows = stack(at, {{"gate_proj", inner}, {"up_proj", inner}}, bias);
  rows.order = interleave_halves(inner);
  return rows;
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
  Rows rows =
      stack(at + "self_attn.", {{"q_proj", heads.query * heads.dim}, {"k_proj", kv}, {"v_proj", kv}}, bias);
  rows.order = pair_rotary_rows(heads.columns(), heads.query + heads.kv, heads.dim, heads.dim);
  return rows;
}

Rows rows_of(const std::string& tensor, i32 count, bool bias) {
  return stack(tensor, {{"", count}}, bias);
}

Tensor gated_mlp(Builder& b, const DecoderConfig& c, const std::string& at, Tensor h, bool bias) {
  return gated_mlp(b, {at + "mlp.", c.intermediate_size, c.hidden_act, bias}, h);
}

Tensor gated_mlp(Builder& b, const GatedMlp& mlp, Tensor h) {
  const i32 hidden = h.last();
  h = b.linear("gate_up", h, gate_up_rows(mlp.at, mlp.inner, mlp.bias));
  h = b.gate("gate", h, activation_kind(mlp.act));
  return b.linear("down", h, rows_of(mlp.at + "down_proj", hidden, mlp.bias));
}

Embedded embed_tokens(Builder& b, const DecoderConfig& c, bool scaled) {
  const Weight table = b.table("embed", "model.embed_tokens.weight", c.vocab_size, c.hidden_size);
  const float scale = scaled ? round_to(table.data.dtype, float(std::sqrt(double(c.hidden_size)))) : 1;
  return {table, b.in("").residual(b.embed("embedding", table, double(scale)))};
}

void finish(Builder& b, const DecoderConfig& c, Tensor x, const Weight& table, const Rms& rms,
            double softcap) {
  x = b.in("").rms_norm("final_norm", b.wanted(x), "model.norm.weight", rms);
  b.head(
      x,
      c.tie_word_embeddings ? table : b.table("head.weight", "lm_head.weight", c.vocab_size, c.hidden_size),
      softcap);
}

ModelInfo info_of(const DecoderConfig& c, const Inventory& tensors, std::span<const int> windows) {
  const bool all_slide = !windows.empty() && std::ranges::find(windows, 0) == windows.end();
  return {.vocab = c.vocab_size,
          .max_positions = c.rope.max_positions,
          .position_limit = c.rope.limit(),
          .layers = c.num_hidden_layers,
          .kv_heads = c.num_key_value_heads,
          .head_dim = c.head_dim,
          .window = all_slide ? std::ranges::max(windows) : 0,
          .weight_dtype = tensors.dtype("model.embed_tokens.weight")};
}

}  // namespace heddle
