// Granite 3's mixtures of experts (IBM, 2024): Granite with a mixture as MLP, whose experts are stored stacked.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/granite_config.h"

namespace heddle::granitemoe {
namespace {

Tensor layer(Builder& b, const GraniteMoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  const ExpertNames names{.at = at + "block_sparse_moe.",
                          .stacked_input = "input_linear.weight",
                          .stacked_output = "output_linear.weight",
                          .router = "router.layer"};
  const Routing routing{.count = c.num_local_experts, .taken = c.num_experts_per_tok, .normalise = true};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.scores.scale = c.attention_multiplier;

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = b.scale("attention_scale", self_attention(b, attention, h), c.residual_multiplier);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = mixture(b, names, c.intermediate_size, c.hidden_act, routing, h);
  return b.add("mlp_residual", b.scale("mlp_scale", h, c.residual_multiplier), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const GraniteMoeConfig c = read_granitemoe_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps},
                         .embedding_scale = c.embedding_multiplier,
                         .logits = {.scale = 1 / c.logits_scaling},
                         .layer = layer_of(c, layer)});
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
