// OLMoE (Muennighoff et al., 2024): Llama whose queries and keys are normalised as whole rows, with a mixture as MLP.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/olmo_config.h"

namespace heddle::olmoe {
namespace {

Tensor layer(Builder& b, const OlmoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  const Routing routing{
      .count = c.num_experts, .taken = c.num_experts_per_tok, .normalise = c.norm_topk_prob};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.clip = c.clip_qkv;
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kWhole, norm);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = mixture(b, {at + "mlp."}, c.intermediate_size, c.hidden_act, routing, h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const OlmoeConfig c = read_olmoe_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "olmoe",
      .doc = "OLMoE, mixtures of experts",
      .supports =
          "any number of experts, norm_topk_prob, clip_qkv, biases of attention, every rope_type, tied "
          "embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::olmoe
