// StableLM 2 (Bellagente et al., 2024) and its predecessors: Llama with LayerNorm, of whose heads a quarter turns, and
// optionally with parallel residuals and a norm for each head.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/layer_norm_config.h"

namespace heddle::stablelm {
namespace {

// Each head has norm weights of its own, stored one by one.
QkNorm norms_of_heads(const std::string& at, const Heads& heads, double eps) {
  QkNorm norm{.kind = QkNorm::Kind::kEachHead, .norm = {.eps = eps, .centred = true}};
  for (i32 i = 0; i < heads.query; ++i)
    norm.weights.push_back({at + "q_layernorm.norms." + std::to_string(i) + ".weight", heads.dim});
  for (i32 i = 0; i < heads.kv; ++i)
    norm.weights.push_back({at + "k_layernorm.norms." + std::to_string(i) + ".weight", heads.dim});
  return norm;
}

Tensor layer(Builder& b, const StablelmConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true, .bias = true};
  SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias);
  if (c.qk_layernorm) attention.norm = norms_of_heads(at + "self_attn.", attention.heads, c.rms_norm_eps);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  if (!c.use_parallel_residual) h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const StablelmConfig c = read_stablelm_config(config);
  return define_decoder(
      c, tensors,
      {.norm = {.eps = c.rms_norm_eps, .centred = true, .bias = true}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "stablelm",
                                .doc = "StableLM, StableLM 2",
                                .supports =
                                    "partial_rotary_factor, use_qkv_bias, qk_layernorm, "
                                    "use_parallel_residual, grouped heads, every rope_type, tied embeddings",
                                .refuses = "nothing that transformers runs",
                                .define = define};
  return family;
}

}  // namespace heddle::stablelm
