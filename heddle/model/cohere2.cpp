// Command R7B and A (Cohere, 2025: "Command A"): Command R with a window in three of four layers; the others see all
// positions and turn no heads.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/layer_norm_config.h"

namespace heddle::cohere2 {
namespace {

Tensor layer(Builder& b, const CohereConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true};
  const Tensor table = c.windows[size_t(l)] > 0 ? rotary.table : Tensor{};
  SelfAttention attention = attention_of(c, l, table, c.attention_bias, c.attention_bias);
  attention.neighbours = true;

  const Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const CohereConfig c = read_cohere2_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps, .centred = true},
                         .logits = {.scale = c.logit_scale},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "cohere2",
                                .doc = "Command R7B and A (Cohere 2)",
                                .supports =
                                    "logit_scale, windows by layer_types or sliding_window_pattern, grouped "
                                    "heads, biases of attention, every rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::cohere2
