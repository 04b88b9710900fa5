// HunYuan (Tencent, 2025): Llama whose query and key heads are normalised after they turn, dense or with a mixture next to the
// MLP that all tokens take.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::hunyuan {
namespace {

Tensor mlp(Builder& b, const HunyuanConfig& c, const std::string& at, Tensor h) {
  if (c.experts.count == 0) return gated_mlp(b, c, at, h);
  const Routing routing{.count = c.experts.count, .taken = c.experts.taken, .normalise = true};
  const ExpertNames names{.at = at + "mlp.", .router = "gate.wg.weight"};
  const Tensor chosen = mixture(b, names, c.intermediate_size, c.hidden_act, routing, h);
  const GatedMlp shared{at + "mlp.shared_mlp.", c.intermediate_size, c.hidden_act};
  return b.sum("experts.all", chosen, gated_mlp(b, shared, h));
}

Tensor layer(Builder& b, const HunyuanConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
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
  return b.add("mlp_residual", mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const HunyuanConfig c = read_hunyuan_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "hunyuan_v1_dense",
      .doc = "HunYuan, dense and mixtures of experts (hunyuan_v1_moe)",
      .supports = "grouped heads, dynamic with alpha, biases of attention, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head",
      .define = define,
      .also = {{"hunyuan_v1_moe"}}};
  return family;
}

}  // namespace heddle::hunyuan
