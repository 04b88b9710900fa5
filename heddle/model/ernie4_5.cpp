// ERNIE 4.5 (Baidu, 2025): Llama whose heads turn in adjacent pairs, with a mixture in most layers of the larger models. Its
// experts are chosen by softmax and a bias.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::ernie4_5 {
namespace {

Tensor mlp(Builder& b, const ErnieConfig& c, i32 l, Tensor h) {
  const std::string at = layer_path(l) + "mlp.";
  if (!c.sparse[size_t(l)]) return gated_mlp(b, c, layer_path(l), h, c.mlp_bias);
  const std::string beside = at + "moe_statics.e_score_correction_bias";  // as published files name it
  const Routing routing{.count = c.experts.count,
                        .taken = c.experts.taken,
                        .normalise = true,
                        .bias = b.has(beside) ? beside : at + "gate.moe_statics.e_score_correction_bias"};
  const Tensor chosen = mixture(b, {at}, c.moe_intermediate_size, c.hidden_act, routing, h);
  if (c.shared_experts == 0) return chosen;
  const GatedMlp shared{at + "shared_experts.", c.moe_intermediate_size * c.shared_experts, c.hidden_act,
                        c.mlp_bias};
  return b.sum("experts.all", chosen, gated_mlp(b, shared, h));
}

Tensor layer(Builder& b, const ErnieConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.neighbours = true;

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", mlp(b, c, l, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const ErnieConfig c = read_ernie4_5_config(config);
  const bool head_has_bias = c.experts.count > 0 && c.mlp_bias;  // in the class of the mixtures
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps},
                         .logits = {.bias = head_has_bias ? "lm_head.bias" : ""},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "ernie4_5",
      .doc = "ERNIE 4.5, dense and mixtures of experts (ernie4_5_moe)",
      .supports =
          "layers with experts by moe_layer_interval and its bounds, shared experts, use_bias, grouped "
          "heads, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define,
      .also = {{"ernie4_5_moe"}}};
  return family;
}

}  // namespace heddle::ernie4_5
