#include "heddle/model/build/granite.h"

namespace heddle {

GranitePart granite_attention(Builder& b, const GraniteConfig& c, i32 l, Tensor rotary) {
  SelfAttention attention = attention_of(c, l, rotary, c.attention_bias, c.attention_bias);
  attention.scores.scale = c.attention_multiplier;
  return [&b, attention = std::move(attention)](Tensor h) { return self_attention(b, attention, h); };
}

Tensor granite_layer(Builder& b, const GraniteConfig& c, i32 l, Tensor x, const GranitePart& mixer,
                     const GranitePart& mlp) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = mixer(b.norm("input_norm", x, at + "input_layernorm", norm));
  h = b.scale("attention_scale", h, c.residual_multiplier);
  x = b.add("attention_residual", h, x);
  h = mlp(b.norm("post_norm", x, at + "post_attention_layernorm", norm));
  return b.add("mlp_residual", b.scale("mlp_scale", h, c.residual_multiplier), x);
}

// Published files have the names of the first module.
Tensor granite_mixture(Builder& b, i32 l, i32 inner, HiddenAct act, const Experts& experts, Tensor h) {
  ExpertNames names{.at = layer_path(l) + "block_sparse_moe.", .router = "router.weight"};
  if (!b.has(names.at + names.router)) {
    names.stacked_input = "input_linear.weight";
    names.stacked_output = "output_linear.weight";
    names.router = "router.layer.weight";
  }
  const Routing routing{.count = experts.count, .taken = experts.taken, .normalise = true};
  return mixture(b, names, inner, act, routing, h);
}

DecoderModel granite_model(const GraniteConfig& c) {
  return {.norm = {.eps = c.rms_norm_eps},
          .embedding_scale = c.embedding_multiplier,
          .logits = {.scale = 1 / c.logits_scaling}};
}

}  // namespace heddle
