// Granite 3 (IBM, 2024).
#include "heddle/model/build/granite.h"

namespace heddle::granite {
namespace {

Tensor layer(Builder& b, const GraniteConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  return granite_layer(b, c, l, x, granite_attention(b, c, l, rotary.table),
                       [&](Tensor h) { return gated_mlp(b, c, layer_path(l), h, c.mlp_bias); });
}

Definition define(const Config& config, const Inventory& tensors) {
  const GraniteConfig c = read_granite_config(config);
  DecoderModel model = granite_model(c);
  model.layer = layer_of(c, layer);
  return define_decoder(c, tensors, std::move(model));
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "granite",
                                .doc = "Granite 3",
                                .supports =
                                    "its four multipliers, grouped heads, biases of attention and MLP, every "
                                    "rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::granite
