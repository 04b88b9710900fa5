// Llama 2 and 3 (Touvron et al., 2023; Grattafiori et al., 2024): RMSNorm, rotary positions, grouped heads,
// SwiGLU. CWM (Meta, 2025) is Llama with a window in three of four layers.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_config.h"

namespace heddle::llama {
namespace {

Tensor layer(Builder& b, const LlamaConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias), h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h, c.mlp_bias), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const LlamaConfig c = config.model_type() == "cwm" ? read_cwm_config(config) : read_llama_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "llama",
                                .doc = "Llama 2 and 3, CWM",
                                .supports =
                                    "grouped heads, windows by layer_types (CWM), biases of attention and "
                                    "MLP, every rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define,
                                .also = {{"cwm"}}};
  return family;
}

}  // namespace heddle::llama
