// Command R (Cohere, 2024): attention and MLP run in parallel after one norm without bias, adjacent pairs turn, and
// logits are scaled.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/layer_norm_config.h"

namespace heddle::cohere {
namespace {

Tensor layer(Builder& b, const CohereConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.neighbours = true;
  if (c.use_qk_norm)
    attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kEachHead, norm);

  const Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const CohereConfig c = read_cohere_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps, .centred = true},
                         .logits = {.scale = c.logit_scale},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "cohere",
      .doc = "Command R and R+ (Cohere)",
      .supports =
          "logit_scale, use_qk_norm, grouped heads, biases of attention, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::cohere
