// Qwen 3 (Yang et al., 2025): Llama whose query and key heads are normalised before their rotation.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/qwen_config.h"

namespace heddle::qwen3 {
namespace {

Tensor layer(Builder& b, const QwenConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const bool sees = config.model_type() != "qwen3";
  const QwenConfig c = sees ? read_qwen3_vl_config(config) : read_qwen3_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "qwen3",
      .doc = "Qwen 3, dense, and the text of Qwen 3 VL",
      .supports =
          "grouped heads, biases of attention, sliding windows by max_window_layers or layer_types, every "
          "rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head, mixtures of experts (model_type qwen3_moe)",
      .define = define,
      .also = {{"qwen3_vl_text", "qwen3_vl"}}};
  return family;
}

}  // namespace heddle::qwen3
