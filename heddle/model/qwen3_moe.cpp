// Qwen 3's mixtures of experts (Yang et al., 2025): Qwen 3 with a mixture as MLP in the layers that its
// configuration names.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/qwen_config.h"

namespace heddle::qwen3_moe {
namespace {

Tensor mlp(Builder& b, const QwenMoeConfig& c, const std::string& at, bool sparse, Tensor h) {
  if (!sparse) return gated_mlp(b, c, at, h);
  const Routing routing{
      .count = c.num_experts, .taken = c.num_experts_per_tok, .normalise = c.norm_topk_prob};
  using Stack = ExpertNames::Stack;
  const ExpertNames names{.at = at + "mlp.", .stack = c.sees_images ? Stack::kEither : Stack::kRows};
  return mixture(b, names, c.moe_intermediate_size, c.hidden_act, routing, h);
}

Tensor layer(Builder& b, const QwenMoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", mlp(b, c, at, c.sparse[size_t(l)], h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const bool sees = config.model_type() != "qwen3_moe";
  const QwenMoeConfig c = sees ? read_qwen3_vl_moe_config(config) : read_qwen3_moe_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "qwen3_moe",
                                .doc = "Qwen 3, mixtures of experts, and the text of those of Qwen 3 VL",
                                .supports =
                                    "any number of experts, layers without (mlp_only_layers, "
                                    "decoder_sparse_step), grouped heads, biases "
                                    "of attention, a sliding window, every rope_type, tied embeddings",
                                .refuses = "layer_types, rotary embeddings of a part of each head",
                                .define = define,
                                .also = {{"qwen3_vl_moe_text", "qwen3_vl_moe"}}};
  return family;
}

}  // namespace heddle::qwen3_moe
