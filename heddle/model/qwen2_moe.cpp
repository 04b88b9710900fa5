// Qwen 1.5's and 2's mixtures of experts (Yang et al., 2024): Qwen 2 with a mixture as MLP, next to whose chosen experts
// all tokens take a shared one, each with a gate of its own.
#include "heddle/model/build/qwen.h"

namespace heddle::qwen2_moe {
namespace {

Tensor layer(Builder& b, const QwenMoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention_of(c, l, rotary.table, c.attention_bias), h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = c.sparse[size_t(l)] ? mixture_with_shared_expert(b, c, at, h) : gated_mlp(b, c, at, h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const QwenMoeConfig c = read_qwen2_moe_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "qwen2_moe",
      .doc = "Qwen 1.5 and 2, mixtures of experts",
      .supports =
          "any number of experts, layers without (mlp_only_layers, decoder_sparse_step), qkv_bias, sliding "
          "windows by max_window_layers or layer_types, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::qwen2_moe
