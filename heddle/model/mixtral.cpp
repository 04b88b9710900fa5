// Mixtral (Jiang et al., 2024): Mistral whose MLP is a mixture of experts.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/mistral_config.h"

namespace heddle::mixtral {
namespace {

Tensor layer(Builder& b, const MixtralConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  const ExpertNames names{block_of_experts(b, at), "w1", "w3", "w2"};
  const Routing routing{.count = c.num_local_experts, .taken = c.num_experts_per_tok, .normalise = true};

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention_of(c, l, rotary.table), h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", mixture(b, names, c.intermediate_size, c.hidden_act, routing, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const MixtralConfig c = read_mixtral_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "mixtral",
      .doc = "Mixtral, mixtures of experts",
      .supports =
          "any number of experts, grouped heads, a sliding window or none, every rope_type, tied embeddings",
      .refuses = "layer_types, rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::mixtral
