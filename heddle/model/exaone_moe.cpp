// K-EXAONE (LG AI Research, 2025): the attention of EXAONE 4 with norms before each part, and the mixtures of DeepSeek V3.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::exaone_moe {
namespace {

Tensor layer(Builder& b, const ExaoneMoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention =
      attention_of(c, l, c.turns_all || c.windows[size_t(l)] > 0 ? rotary.table : Tensor{});
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = l < c.experts.first_k_dense_replace ? gated_mlp(b, c, at, h)
                                          : grouped_mixture(b, c.experts, c.hidden_act, at + "mlp.", h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const ExaoneMoeConfig c = read_exaone_moe_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "exaone_moe",
                                .doc = "K-EXAONE",
                                .supports =
                                    "experts by sigmoid, bias and groups with shared ones, mlp_layer_types, "
                                    "windows by layer_types or sliding_window_pattern, or none, grouped "
                                    "heads, every rope_type, tied embeddings",
                                .refuses = "layers that predict several tokens are not used",
                                .define = define};
  return family;
}

}  // namespace heddle::exaone_moe
