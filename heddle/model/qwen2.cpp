// Qwen 2 and 2.5 (Yang et al., 2024): Llama with a bias on queries, keys and values, and optionally a sliding
// window in the upper layers.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/qwen_config.h"

namespace heddle::qwen2 {
namespace {

Tensor layer(Builder& b, const QwenConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  const bool qkv_bias = true;
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention_of(c, l, rotary.table, qkv_bias), h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const bool sees = config.model_type() != "qwen2";
  const QwenConfig c = sees ? read_qwen2_vl_config(config) : read_qwen2_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "qwen2",
      .doc = "Qwen 2 and 2.5, and the text of their VL models",
      .supports =
          "grouped heads, sliding windows by max_window_layers or layer_types, every rope_type, tied "
          "embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define,
      .also = {
          {"qwen2_vl"}, {"qwen2_5_vl"}, {"qwen2_vl_text", "qwen2_vl"}, {"qwen2_5_vl_text", "qwen2_5_vl"}}};
  return family;
}

}  // namespace heddle::qwen2
