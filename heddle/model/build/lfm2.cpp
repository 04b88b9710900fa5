#include "heddle/model/build/lfm2.h"

#include <algorithm>

#include "heddle/ir/rules.h"
#include "heddle/model/build/mixture.h"

namespace heddle {
namespace {

// C * convolution(B * x), where B, C and x are one projection of h.
Tensor gated_convolution(Builder& b, const Lfm2Config& c, const std::string& at, Tensor h) {
  const i32 columns = c.hidden_size;
  const Tensor all = b.linear("bcx", h, rows_of(at + "in_proj", 3 * columns, c.conv_bias));
  const auto part = [&](i32 i) { return columns_of(all, i * columns, columns); };
  Tensor y = b.multiply("input_gated", part(0), part(2));
  y = b.convolve(
      "convolution", y,
      {.tensor = at + "conv.weight", .bias = c.conv_bias ? at + "conv.bias" : "", .width = c.conv_width});
  y = b.multiply("output_gated", part(1), y);
  return b.linear("o", y, rows_of(at + "out_proj", columns, c.conv_bias));
}

SelfAttention attention(const Lfm2Config& c, i32 l, Tensor table) {
  SelfAttention made = attention_of(c, l, table);
  const std::string at = layer_path(l) + "self_attn.";
  made.o = rows_of(at + "out_proj", c.hidden_size);
  made.norm = qk_norm(at, made.heads, QkNorm::Kind::kHead, {.eps = c.rms_norm_eps}, "layernorm");
  return made;
}

Tensor mlp(Builder& b, const Lfm2Config& c, i32 l, const std::string& at, Tensor h) {
  if (l < c.num_dense_layers || c.experts.count == 0)
    return gated_mlp(b, {.at = at, .inner = c.intermediate_size, .down = "w2", .gate = "w1", .up = "w3"}, h);
  const Routing routing{.count = c.experts.count,
                        .taken = c.experts.taken,
                        .sigmoid = true,
                        .normalise = c.norm_topk_prob,
                        .bias = c.use_expert_bias ? at + "expert_bias" : "",
                        .scale = c.routed_scaling_factor};
  return mixture(b, {at, "w1", "w3", "w2"}, c.moe_intermediate_size, c.hidden_act, routing, h);
}

Tensor layer(Builder& b, const Lfm2Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = b.norm("operator_norm", x, at + "operator_norm", norm);
  h = c.convolves[size_t(l)] ? gated_convolution(b, c, at + "conv.", h)
                             : self_attention(b, attention(c, l, rotary.table), h);
  x = b.add("operator_residual", h, x);
  h = b.norm("ffn_norm", x, at + "ffn_norm", norm);
  return b.add("mlp_residual", mlp(b, c, l, at + "feed_forward.", h), x);
}

}  // namespace

Definition define_lfm2(const Lfm2Config& c, const Inventory& tensors) {
  Definition made = define_decoder(
      c, tensors,
      {.last_norm = "model.embedding_norm", .norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
  made.info.recurrent = std::ranges::find(c.convolves, true) != c.convolves.end();
  return made;
}

}  // namespace heddle
