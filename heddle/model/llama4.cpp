// Llama 4 (Meta, 2025): heads that turn are normalised after it and attend within chunks of the text, those of other layers
// see all of it; mixtures of one expert, whose input is scaled, next to one that all tokens take.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/llama4_config.h"

namespace heddle::llama4 {
namespace {

// The factors of queries at all positions of the model.
RotaryGains gains_of(const Llama4Config& c, i32 positions) {
  RotaryGains gains;
  if (c.attn_scale == 0 || positions < c.floor_scale) return gains;
  for (i32 p = 0; p < positions; ++p)
    gains.values.push_back(float(std::log1p((p + 1) / c.floor_scale) * c.attn_scale + 1));
  return gains;
}

Tensor experts(Builder& b, const Llama4Config& c, const std::string& at, Tensor h) {
  const Routing routing{.count = c.experts.count, .taken = 1, .sigmoid = true, .scales_input = true};
  const ExpertNames names{.at = at, .router = "router.weight", .stack = ExpertNames::Stack::kColumns};
  const Tensor chosen = mixture(b, names, c.intermediate_size, c.hidden_act, routing, h);
  return b.sum("experts.all", chosen,
               gated_mlp(b, GatedMlp{at + "shared_expert.", c.intermediate_size, c.hidden_act}, h));
}

Tensor layer(Builder& b, const Llama4Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l), mlp = at + "feed_forward.";
  const Norm norm{.eps = c.rms_norm_eps};
  const bool turns = c.turns[size_t(l)];
  SelfAttention attention =
      attention_of(c, l, turns ? rotary.table : Tensor{}, c.attention_bias, c.attention_bias);
  attention.neighbours = true;
  if (turns && c.qk_norm) attention.norm = {.kind = QkNorm::Kind::kHead, .norm = norm, .after_rope = true};
  if (!turns) attention.gains = gains_of(c, b.context());

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = c.sparse[size_t(l)] ? experts(b, c, mlp, h)
                          : gated_mlp(b, GatedMlp{mlp, c.dense_intermediate_size, c.hidden_act}, h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const Llama4Config c = read_llama4_config(config);
  Definition made =
      define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
  if (c.chunk == 0 || c.chunk > made.info.max_positions) return made;
  made.info.position_limit = fmt::format(
      "attention in chunks is served up to attention_chunk_size, {} positions: in longer texts layers see "
      "only the last chunk, for which there is no op yet",
      c.chunk);
  return made;
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "llama4_text",
      .doc = "Llama 4",
      .supports =
          "the text model of a llama4 with images, texts of attention_chunk_size positions, layers that turn "
          "no "
          "heads and whose queries grow, use_qk_norm, mixtures of one expert by sigmoid, every rope_type",
      .refuses = "longer texts, more experts for a token",
      .define = define,
      .also = {{"llama4_text", "llama4"}}};
  return family;
}

}  // namespace heddle::llama4
