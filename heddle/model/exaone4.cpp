// EXAONE 4 (LG AI Research, 2025): norms after each part and not before it, normalised query and key heads, and a
// window in three of four layers; the others turn no heads.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::exaone4 {
namespace {

Tensor layer(Builder& b, const Exaone4Config& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention =
      attention_of(c, l, c.turns_all || c.windows[size_t(l)] > 0 ? rotary.table : Tensor{});
  attention.norm = qk_norm(at + "self_attn.", attention.heads, QkNorm::Kind::kHead, norm);

  Tensor h =
      b.norm("post_attention_norm", self_attention(b, attention, x), at + "post_attention_layernorm", norm);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_mlp_norm", gated_mlp(b, c, at, x), at + "post_feedforward_layernorm", norm);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const Exaone4Config c = read_exaone4_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "exaone4",
                                .doc = "EXAONE 4",
                                .supports =
                                    "windows by layer_types or a number as sliding_window_pattern, or none, "
                                    "grouped heads, every rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::exaone4
