// Phi-3.5-MoE (Abdin et al., 2024: "Phi-3 Technical Report"): Mixtral with LayerNorm and biases, whose experts have shares of a
// sparse mixer.
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/mistral_config.h"

namespace heddle::phimoe {
namespace {

// As files name it, or as transformers' modules do.
ExpertNames names_of(const Builder& b, const std::string& at) {
  const bool modules = b.has(at + "mlp.router.weight");
  return {.at = at + (modules ? "mlp." : "block_sparse_moe."),
          .gate = "w1",
          .up = "w3",
          .down = "w2",
          .router = modules ? "router.weight" : "gate.weight"};
}

Tensor layer(Builder& b, const PhimoeConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps, .centred = true, .bias = true};
  const Routing routing{.count = c.num_local_experts,
                        .taken = c.num_experts_per_tok,
                        .sparse_mixer = true,
                        .threshold = c.router_threshold};
  const SelfAttention attention = attention_of(c, l, rotary.table, c.attention_bias, c.attention_bias);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = mixture(b, names_of(b, at), c.intermediate_size, c.hidden_act, routing, h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const PhimoeConfig c = read_phimoe_config(config);
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps, .centred = true, .bias = true},
                         .logits = {.bias = c.lm_head_bias ? "lm_head.bias" : ""},
                         .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "phimoe",
      .doc = "Phi-3.5-MoE",
      .supports =
          "any number of experts of which each token takes two, grouped heads, biases of attention and of "
          "the head, a "
          "sliding window or none, longrope with short_mscale, tied embeddings",
      .refuses = "contexts beyond original_max_position_embeddings, other rope types",
      .define = define};
  return family;
}

}  // namespace heddle::phimoe
