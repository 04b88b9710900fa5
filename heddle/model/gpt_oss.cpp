// gpt-oss (OpenAI, 2025): a window in every other layer, a learned sink for each head that takes a share of its
// attention, and mixtures of experts with biases and a clamped gate.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/gpt_oss_config.h"

namespace heddle::gpt_oss {
namespace {

// The matrices of all experts. Files in MXFP4 store them by rows, others transposed.
Rows stacked_experts(const GptOssConfig& c, const std::string& tensor, i32 rows, i32 cols) {
  if (c.in_mxfp4)
    return {.sources = {{tensor + "_blocks", c.num_local_experts * rows}}, .order = {}, .biases = {}};
  return transposed_experts(tensor, c.num_local_experts, rows, cols);
}

Tensor mlp(Builder& b, const GptOssConfig& c, const std::string& at, Tensor h) {
  const i32 hidden = c.hidden_size, inner = c.intermediate_size;
  const Routing routing{.count = c.num_local_experts, .taken = c.num_experts_per_tok, .normalise = true};
  const Routes routes = b.route("router", h, rows_of(at + "router", c.num_local_experts, true), routing);
  h = b.expert_linear("experts.gate_up", h, routes,
                      stacked_experts(c, at + "experts.gate_up_proj", 2 * inner, hidden));
  h = b.expert_bias("experts.gate_up_bias", h, routes, at + "experts.gate_up_proj_bias");
  h = b.clamped_gate("experts.gate", h, c.swiglu_alpha, c.swiglu_limit);
  h = b.expert_linear("experts.down", h, routes, stacked_experts(c, at + "experts.down_proj", hidden, inner));
  h = b.expert_bias("experts.down_bias", h, routes, at + "experts.down_proj_bias");
  return b.expert_sum("experts.sum", h, routes);
}

Tensor layer(Builder& b, const GptOssConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.scores.sinks = at + "self_attn.sinks";

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", mlp(b, c, at + "mlp.", h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  GptOssConfig c = read_gpt_oss_config(config);
  c.in_mxfp4 = tensors.has("model.layers.0.mlp.experts.gate_up_proj_blocks");
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "gpt_oss",
      .doc = "gpt-oss, mixtures of experts",
      .supports =
          "experts in MXFP4 (expanded to bf16, exactly) or floats, windows by layer_types, swiglu_limit, "
          "grouped heads, biases of attention, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head, other quantisations",
      .define = define};
  return family;
}

}  // namespace heddle::gpt_oss
