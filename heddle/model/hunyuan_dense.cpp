// HunYuan's dense models (Tencent, 2025): Llama whose query and key heads are normalised after they turn.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::hunyuan_dense {
namespace {

Tensor layer(Builder& b, const DecoderConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);
  attention.norm = {.kind = QkNorm::Kind::kHead,
                    .weights = {{at + "self_attn.query_layernorm.weight", c.head_dim},
                                {at + "self_attn.key_layernorm.weight", c.head_dim}},
                    .norm = norm,
                    .after_rope = true};

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const DecoderConfig c = read_hunyuan_dense_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "hunyuan_v1_dense",
      .doc = "HunYuan, dense",
      .supports = "grouped heads, dynamic with alpha, biases of attention, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define};
  return family;
}

}  // namespace heddle::hunyuan_dense
