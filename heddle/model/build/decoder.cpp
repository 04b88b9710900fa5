#include "heddle/model/build/decoder.h"

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

Rows gate_up_rows(const std::string& at, i32 inner, bool bias) {
  Rows rows = stack(at + "mlp.", {{"gate_proj", inner}, {"up_proj", inner}}, bias);
  rows.order = interleave_halves(inner);
  return rows;
}

Rows rows_of(const std::string& tensor, i32 count, bool bias) {
  return stack(tensor, {{"", count}}, bias);
}

Weight head_of(Builder& b, const DecoderConfig& c, const Weight& embed) {
  return c.tie_word_embeddings ? embed
                               : b.table("head.weight", "lm_head.weight", c.vocab_size, c.hidden_size);
}

ModelInfo info_of(const DecoderConfig& c, const Inventory& tensors) {
  return {.vocab = c.vocab_size,
          .max_positions = c.rope.max_positions,
          .position_limit = c.rope.limit(),
          .layers = c.num_hidden_layers,
          .kv_heads = c.num_key_value_heads,
          .head_dim = c.head_dim,
          .weight_dtype = tensors.dtype("model.embed_tokens.weight")};
}

}  // namespace heddle
