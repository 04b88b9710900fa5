// Gemma 3, text (Gemma Team, 2025): Gemma 2 with normalised query and key heads for its caps, and layers with a
// window between those that see all positions, each kind with rotary frequencies of its own.
#include <cmath>

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/gemma_config.h"

namespace heddle::gemma3 {
namespace {

Tensor layer(Builder& b, const GemmaConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .plus = 1};
  const Tensor near_or_far = c.windows[size_t(l)] > 0 ? rotary.other : rotary.table;
  SelfAttention attention = attention_of(c, l, near_or_far, c.attention_bias, c.attention_bias);
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);
  attention.scores.scale = 1 / std::sqrt(c.query_pre_attn_scalar);

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
  const GemmaConfig c = read_gemma3_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps, .plus = 1},
                         .scaled_embedding = true,
                         .logits = {.softcap = c.final_logit_softcapping},
                         .other_rope = c.local_rope,
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "gemma3_text",
      .doc = "Gemma 3, text",
      .supports =
          "the text model of a gemma3 with images, windows by layer_types or sliding_window_pattern, a rope "
          "for each kind of layer and of every "
          "rope_type, final_logit_softcapping, query_pre_attn_scalar, biases of attention",
      .refuses =
          "attn_logit_softcapping, use_bidirectional_attention, rotary "
          "embeddings "
          "of a part of each head",
      .define = define,
      .also = {{"gemma3_text", "gemma3"}}};
  return family;
}

}  // namespace heddle::gemma3
