// Bamba (IBM, Princeton, CMU and UIUC, 2024): Llama with Mamba-2 in place of attention in most layers.
#include "heddle/model/build/mamba2.h"
#include "heddle/model/hf/mamba_hybrid_config.h"

namespace heddle::bamba {
namespace {

Tensor layer(Builder& b, const BambaConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = c.attends[size_t(l)]
          ? self_attention(b, attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias), h)
          : mamba2(b, c.mamba, c.rms_norm_eps, at + "mamba.", h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "pre_ff_layernorm", norm);
  const GatedMlp mlp{at + "feed_forward.", c.intermediate_size, c.hidden_act, c.mlp_bias};
  return b.add("mlp_residual", gated_mlp(b, mlp, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const BambaConfig c = read_bamba_config(config);
  Definition made = define_decoder(
      c, tensors,
      {.last_norm = "model.final_layernorm", .norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
  made.info.recurrent = has_mamba(c.attends);
  return made;
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "bamba",
      .doc = "Bamba",
      .supports =
          "attention in any layers (attn_layer_indices), heads of which any part turns, grouped heads, "
          "biases "
          "of attention, MLP and Mamba's projections, every rope_type, tied embeddings",
      .refuses = "sequences begin with no page of others",
      .define = define};
  return family;
}

}  // namespace heddle::bamba
