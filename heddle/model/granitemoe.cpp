// Granite 3's mixtures of experts (IBM, 2024): Granite with a mixture as MLP, whose experts are stored stacked.
#include "heddle/model/build/granite.h"

namespace heddle::granitemoe {
namespace {

Tensor layer(Builder& b, const GraniteMoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  return granite_layer(b, c, l, x, granite_attention(b, c, l, rotary.table), [&](Tensor h) {
    return granite_mixture(b, l, c.intermediate_size, c.hidden_act, c.experts, h);
  });
}

Definition define(const Config& config, const Inventory& tensors) {
  const GraniteMoeConfig c = read_granitemoe_config(config);
  DecoderModel model = granite_model(c);
  model.layer = layer_of(c, layer);
  return define_decoder(c, tensors, std::move(model));
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "granitemoe",
                                .doc = "Granite 3, mixtures of experts",
                                .supports =
                                    "any number of experts, its four multipliers, grouped heads, biases of "
                                    "attention, every rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::granitemoe
