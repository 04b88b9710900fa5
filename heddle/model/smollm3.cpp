// SmolLM3 (Hugging Face, 2025): Llama of which every fourth layer turns no heads (Yang et al., 2025: "Rope to Nope and
// Back Again").
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::smollm3 {
namespace {

Tensor layer(Builder& b, const Smollm3Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  const Tensor table = c.turns[size_t(l)] ? rotary.table : Tensor{};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention_of(c, l, table, c.attention_bias, c.attention_bias), h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h, c.mlp_bias), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const Smollm3Config c = read_smollm3_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "smollm3",
                                .doc = "SmolLM3",
                                .supports =
                                    "no_rope_layers, no_rope_layer_interval, sliding windows, biases of "
                                    "attention and MLP, every rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::smollm3
