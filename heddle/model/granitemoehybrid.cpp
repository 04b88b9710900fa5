// Granite 4 (IBM, 2025) without layers of state spaces, as its smallest models are: Granite with an MLP that all tokens
// take, next to a mixture of experts if it has one.
#include "heddle/model/build/granite.h"

namespace heddle::granitemoehybrid {
namespace {

Tensor mlp(Builder& b, const GraniteHybridConfig& c, i32 l, Tensor h) {
  const GatedMlp shared{.at = layer_path(l) + "shared_mlp.",
                        .inner = c.shared_intermediate_size,
                        .act = c.hidden_act,
                        .merged = "input_linear",
                        .down = "output_linear"};
  if (c.experts.count == 0) return gated_mlp(b, shared, h);
  const Tensor chosen = granite_mixture(b, l, c.intermediate_size, c.hidden_act, c.experts, h);
  return b.sum("experts.all", chosen, gated_mlp(b, shared, h));
}

Tensor layer(Builder& b, const GraniteHybridConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const Tensor table = c.turns ? rotary.table : Tensor{};
  return granite_layer(b, c, l, x, table, [&](Tensor h) { return mlp(b, c, l, h); });
}

Definition define(const Config& config, const Inventory& tensors) {
  const GraniteHybridConfig c = read_granitemoehybrid_config(config);
  DecoderModel model = granite_model(c);
  model.layer = layer_of(c, layer);
  return define_decoder(c, tensors, std::move(model));
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "granitemoehybrid",
      .doc = "Granite 4 without Mamba",
      .supports =
          "shared MLPs with and without a mixture, with and without rotary embeddings, its four multipliers, "
          "grouped heads, biases of attention, every rope_type, tied embeddings",
      .refuses = "layers of state spaces (Mamba), rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::granitemoehybrid
