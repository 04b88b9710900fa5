// Ministral 3 (Mistral AI, 2025): Mistral whose queries grow with the logarithm of their position (Llama 4, 2025), so
// that attention stays sharp far into a text.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::ministral3 {
namespace {

Tensor layer(Builder& b, const Ministral3Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table);
  attention.query_rotary = rotary.other;

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const Ministral3Config c = read_ministral3_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps},
                         .other_rope = c.query_rope,
                         .other_name = "query_rope",
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "ministral3",
                                .doc = "Ministral 3",
                                .supports =
                                    "the text model of a mistral3 with images, llama_4_scaling_beta, a "
                                    "sliding window or none, every rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define,
                                .also = {{"ministral3", "mistral3"}}};
  return family;
}

}  // namespace heddle::ministral3
