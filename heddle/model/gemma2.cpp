// Gemma 2 (Gemma Team, 2024): norms before and after each part, GeGLU, windows in every other layer, caps on scores
// and logits, embeddings scaled by sqrt(hidden_size).
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/gemma_config.h"

namespace heddle::gemma2 {
namespace {

Tensor layer(Builder& b, const GemmaConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .plus = 1};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.scores.scale = 1 / std::sqrt(c.query_pre_attn_scalar);
  attention.scores.softcap = c.attn_logit_softcapping;

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention, h);
  h = b.norm("post_attention_norm", h, at + "post_attention_layernorm", norm);
  x = b.add("attention_residual", h, x);

  h = b.norm("pre_mlp_norm", x, at + "pre_feedforward_layernorm", norm);
  h = gated_mlp(b, c, at, h);
  h = b.norm("post_mlp_norm", h, at + "post_feedforward_layernorm", norm);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const GemmaConfig c = read_gemma2_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps, .plus = 1},
                         .scaled_embedding = true,
                         .logits = {.softcap = c.final_logit_softcapping},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "gemma2",
      .doc = "Gemma 2",
      .supports =
          "windows by layer_types, both softcaps or none, query_pre_attn_scalar, biases of attention, every "
          "rope_type",
      .refuses = "use_bidirectional_attention, rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::gemma2
