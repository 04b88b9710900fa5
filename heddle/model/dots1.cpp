// dots.llm1 (rednote-hilab, 2025): the attention of Qwen 3 and the mixtures of DeepSeek V3.
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::dots1 {
namespace {

Tensor layer(Builder& b, const Dots1Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.norm = qk_norm(layer_path(l) + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);
  return grouped_layer(b, c, c.experts, l, x, attention);
}

Definition define(const Config& config, const Inventory& tensors) {
  const Dots1Config c = read_dots1_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "dots1",
                                .doc = "dots.llm1",
                                .supports =
                                    "experts by sigmoid, bias and groups with shared ones, windows by "
                                    "layer_types, grouped heads, biases of attention, every rope_type, tied "
                                    "embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::dots1
