// MiniMax M2 (MiniMax, 2025): queries and keys normalised as whole rows, heads of which a part turns, and mixtures whose
// experts are chosen by sigmoid and a bias, as those of DeepSeek V3.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::minimax_m2 {
namespace {

Tensor layer(Builder& b, const MinimaxM2Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l), experts = block_of_experts(b, at);
  const Norm norm{.eps = c.rms_norm_eps};
  const Routing routing{.count = c.experts.count,
                        .taken = c.experts.taken,
                        .sigmoid = true,
                        .normalise = true,
                        .bias = experts + "e_score_correction_bias"};
  SelfAttention attention = attention_of(c, l, rotary.table);
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kWhole, norm);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = mixture(b, {experts, "w1", "w3", "w2"}, c.intermediate_size, c.hidden_act, routing, h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const MinimaxM2Config c = read_minimax_m2_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "minimax_m2",
      .doc = "MiniMax M2, mixtures of experts",
      .supports =
          "any number of experts by sigmoid and bias, rotary_dim and partial_rotary_factor, grouped heads, "
          "every rope_type, tied embeddings",
      .refuses = "layers of lightning attention, layers that predict several tokens are not used",
      .define = define};
  return family;
}

}  // namespace heddle::minimax_m2
