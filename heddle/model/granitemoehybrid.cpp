// Granite 4 (IBM, 2025): Granite whose layers may have Mamba-2 in place of attention, with an MLP that all tokens take, next to a
// mixture of experts if it has one.
#include "heddle/model/build/granite.h"
#include "heddle/model/build/mamba2.h"

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
  const GranitePart mixer =
      c.attends[size_t(l)] ? granite_attention(b, c, l, c.turns ? rotary.table : Tensor{}) : [&](Tensor h) {
        return mamba2(b, c.mamba, c.rms_norm_eps, layer_path(l) + "mamba.", h);
      };
  return granite_layer(b, c, l, x, mixer, [&](Tensor h) { return mlp(b, c, l, h); });
}

Definition define(const Config& config, const Inventory& tensors) {
  const GraniteHybridConfig c = read_granitemoehybrid_config(config);
  DecoderModel model = granite_model(c);
  model.layer = layer_of(c, layer);
  Definition made = define_decoder(c, tensors, std::move(model));
  made.info.recurrent = has_mamba(c.attends);
  return made;
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "granitemoehybrid",
      .doc = "Granite 4",
      .supports =
          "layers of Mamba-2 and of attention in any order, shared MLPs with and without a mixture, with and "
          "without rotary embeddings, its four multipliers, grouped heads, biases of attention and of "
          "Mamba's "
          "projections, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head; sequences begin with no page of others",
      .define = define};
  return family;
}

}  // namespace heddle::granitemoehybrid
