// Falcon H1 (TII, 2025): each layer has attention and Mamba-2 side by side, and multipliers all over (Yang et al., 2022: "Tensor
// Programs V").
#include "heddle/ir/rules.h"
#include "heddle/model/build/activations.h"
#include "heddle/model/build/mamba2.h"
#include "heddle/model/hf/mamba_hybrid_config.h"

namespace heddle::falcon_h1 {
namespace {

// down(act(m gate h) * up h)
Tensor mlp(Builder& b, const FalconH1Config& c, const std::string& at, Tensor h) {
  const i32 inner = c.intermediate_size;
  Rows rows{.sources = {{at + "gate_proj.weight", inner}, {at + "up_proj.weight", inner}}};
  if (c.mlp_bias) rows.biases = {at + "gate_proj.bias", at + "up_proj.bias"};
  const Tensor all = b.linear("gate_up", h, rows);
  const Tensor gate = b.scale("mlp_gate_scale", columns_of(all, 0, inner), c.gate_multiplier);
  const Tensor y =
      b.gated_product("gate", gate, columns_of(all, inner, inner), activation_kind(c.hidden_act));
  return b.linear("down", y, rows_of(at + "down_proj", c.hidden_size, c.mlp_bias));
}

Tensor layer(Builder& b, const FalconH1Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l), scope = "layers." + std::to_string(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.scores.scale *= c.key_multiplier;

  const Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  Tensor mixed = b.scale("ssm_in", h, c.ssm_in_multiplier);
  mixed = mamba2(b.in(scope + ".mamba"), c.mamba, c.rms_norm_eps, at + "mamba.", mixed);
  mixed = b.in(scope).scale("ssm_out", mixed, c.ssm_out_multiplier);
  Tensor attended = self_attention(b, attention, b.scale("attention_in", h, c.attention_in_multiplier));
  attended = b.scale("attention_out", attended, c.attention_out_multiplier);
  x = b.add("mixer_residual", b.sum("mixed", mixed, attended), x);

  const Tensor y = mlp(b, c, at + "feed_forward.", b.norm("post_norm", x, at + "pre_ff_layernorm", norm));
  return b.add("mlp_residual", b.scale("mlp_scale", y, c.down_multiplier), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const FalconH1Config c = read_falcon_h1_config(config);
  Definition made = define_decoder(c, tensors,
                                   {.last_norm = "model.final_layernorm",
                                    .norm = {.eps = c.rms_norm_eps},
                                    .embedding_scale = c.embedding_multiplier,
                                    .logits = {.scale = c.lm_head_multiplier},
                                    .layer = layer_of(c, layer)});
  made.info.recurrent = true;
  return made;
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "falcon_h1",
      .doc = "Falcon H1",
      .supports =
          "all its multipliers, a norm of Mamba-2 before or after its gate or none, grouped heads, "
          "biases of attention, MLP and projections, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head; sequences begin with no page of others",
      .define = define};
  return family;
}

}  // namespace heddle::falcon_h1
