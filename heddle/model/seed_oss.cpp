// Seed-OSS (ByteDance Seed, 2025): Llama with biases of queries, keys and values.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::seed_oss {
namespace {

Tensor layer(Builder& b, const SeedOssConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = self_attention(b, attention_of(c, l, rotary.table, c.attention_bias, c.attention_out_bias), h);
  x = b.add("attention_residual", h, x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  return b.add("mlp_residual", gated_mlp(b, c, at, h, c.mlp_bias), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const SeedOssConfig c = read_seed_oss_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {.model_type = "seed_oss",
                                .doc = "Seed-OSS",
                                .supports =
                                    "grouped heads, biases of attention (attention_bias, attention_out_bias) "
                                    "and MLP, every rope_type, tied embeddings",
                                .refuses = "rotary embeddings of a part of each head",
                                .define = define};
  return family;
}

}  // namespace heddle::seed_oss
