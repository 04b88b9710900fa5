// GLM-4 (GLM Team, 2024): merged gate and up projections, and half of each head turns, in adjacent pairs. That of 2025
// (0414) has norms after each part too.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/glm_config.h"

namespace heddle::glm4 {
namespace {

Tensor layer(Builder& b, const GlmConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias);
  attention.neighbours = true;
  const GatedMlp mlp{
      .at = at + "mlp.", .inner = c.intermediate_size, .act = c.hidden_act, .merged = "gate_up_proj"};

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention, h);
  if (c.norms_outputs) h = b.norm("post_attention_norm", h, at + "post_self_attn_layernorm", norm);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = gated_mlp(b, mlp, h);
  if (c.norms_outputs) h = b.norm("post_mlp_norm", h, at + "post_mlp_layernorm", norm);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const GlmConfig c = config.model_type() == "glm" ? read_glm_config(config) : read_glm4_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "glm4",
                                .doc = "GLM-4, of 2024 (glm) and of 2025 (0414)",
                                .supports =
                                    "grouped heads, partial_rotary_factor, biases of queries, keys and "
                                    "values, every rope_type, tied embeddings",
                                .refuses = "nothing that transformers runs",
                                .define = define,
                                .also = {{"glm"}}};
  return family;
}

}  // namespace heddle::glm4
