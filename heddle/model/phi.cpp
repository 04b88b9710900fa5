// Phi 1, 1.5 and 2 (Gunasekar et al., 2023: "Textbooks Are All You Need"): attention and MLP in parallel after one
// LayerNorm, half of each head turns, and biases everywhere, also of the logits.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/layer_norm_config.h"

namespace heddle::phi {
namespace {

Tensor layer(Builder& b, const PhiConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true, .bias = true};
  SelfAttention attention = attention_of(c, l, rotary.table, true);
  attention.o = rows_of(at + "self_attn.dense", c.hidden_size, true);
  if (c.qk_layernorm)
    attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm, "layernorm");
  const PlainMlp mlp{at + "mlp.fc1", at + "mlp.fc2", c.intermediate_size, c.hidden_act, true};

  const Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  return b.add("mlp_residual", plain_mlp(b, mlp, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const PhiConfig c = read_phi_config(config);
  return define_decoder(c, tensors,
                        {.last_norm = "model.final_layernorm",
                         .norm = {.eps = c.rms_norm_eps, .centred = true, .bias = true},
                         .logits = {.bias = "lm_head.bias"},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "phi",
      .doc = "Phi 1, 1.5 and 2",
      .supports = "partial_rotary_factor, qk_layernorm, grouped heads, every rope_type, tied embeddings",
      .refuses = "nothing that transformers runs",
      .define = define};
  return family;
}

}  // namespace heddle::phi
