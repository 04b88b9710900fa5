// Mistral (Jiang et al., 2023): Llama whose rows see a sliding window.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/mistral_config.h"

namespace heddle::mistral {
namespace {

Tensor layer(Builder& b, const MistralConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention_of(c, l, rotary.table), h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const MistralConfig c = read_mistral_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "mistral",
                                .doc = "Mistral",
                                .supports =
                                    "the text model of a mistral3 with images, grouped heads, a sliding "
                                    "window or none, every rope_type, tied embeddings",
                                .refuses = "layer_types, rotary embeddings of a part of each head",
                                .define = define,
                                .also = {{"mistral", "mistral3"}}};
  return family;
}

}  // namespace heddle::mistral
