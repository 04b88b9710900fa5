// K-EXAONE (LG AI Research, 2025): the attention of EXAONE 4 with norms before each part, and the mixtures of DeepSeek V3.
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::exaone_moe {
namespace {

Tensor layer(Builder& b, const ExaoneMoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention =
      attention_of(c, l, c.turns_all || c.windows[size_t(l)] > 0 ? rotary.table : Tensor{});
  attention.norm = qk_norm(layer_path(l) + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);
  return grouped_layer(b, c, c.experts, l, x, attention);
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
