// Nemotron-H, Nemotron Nano 2 and Nemotron 3 (Nvidia, 2025): each layer has one part, Mamba-2, attention whose heads do not turn,
// an MLP or a mixture of experts, which have no gates and the square of relu.
#include <cmath>

#include "heddle/model/build/mamba2.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/mamba_hybrid_config.h"

namespace heddle::nemotron_h {
namespace {

SelfAttention attention(const NemotronHConfig& c, i32 l, const std::string& at) {
  const Heads heads = heads_of(c);
  const i32 kv = heads.kv * heads.dim;
  return {.layer = l,
          .heads = heads,
          .qkv = {.sources = {{at + "q_proj.weight", heads.query * heads.dim},
                              {at + "k_proj.weight", kv},
                              {at + "v_proj.weight", kv}}},
          .o = rows_of(at + "o_proj", c.hidden_size),
          .scores = {.scale = 1 / std::sqrt(double(heads.dim))}};
}

Tensor experts(Builder& b, const NemotronHConfig& c, const std::string& at, Tensor h) {
  const GroupedExperts& e = c.experts;
  const Routes routes = b.route("router", h, {.sources = {{at + "gate.weight", e.n_routed_experts}}},
                                {.count = e.n_routed_experts,
                                 .taken = e.num_experts_per_tok,
                                 .sigmoid = true,
                                 .normalise = e.norm_topk_prob,
                                 .bias = at + "gate.e_score_correction_bias",
                                 .groups = e.n_group,
                                 .groups_kept = e.topk_group,
                                 .scores_of_group = e.scores_of_group,
                                 .scale = e.routed_scaling_factor});
  const bool latent = c.latent_size > 0;
  Tensor y = latent ? b.linear("latent", h, rows_of(at + "fc1_latent_proj", c.latent_size, c.mlp_bias)) : h;
  y = plain_experts(b, at, e.moe_intermediate_size, c.hidden_act, routes, y);
  if (latent) y = b.linear("latent_out", y, rows_of(at + "fc2_latent_proj", c.hidden_size, c.mlp_bias));
  const PlainMlp shared{at + "shared_experts.up_proj", at + "shared_experts.down_proj",
                        c.shared_intermediate_size, c.hidden_act, c.mlp_bias};
  return b.sum("experts.all", y, plain_mlp(b, shared, h));
}

Tensor part(Builder& b, const NemotronHConfig& c, i32 l, const std::string& at, Tensor h) {
  switch (c.parts[size_t(l)]) {
    case NemotronPart::kMamba:
      return mamba2(b, c.mamba, c.rms_norm_eps, at, h);
    case NemotronPart::kAttention:
      return self_attention(b, attention(c, l, at), h);
    case NemotronPart::kMlp:
      return plain_mlp(b, {at + "up_proj", at + "down_proj", c.intermediate_size, c.hidden_act, c.mlp_bias},
                       h);
    case NemotronPart::kExperts:
      return experts(b, c, at, h);
  }
  return h;
}

Tensor layer(Builder& b, const NemotronHConfig& c, i32 l, Tensor x, const Rotaries&) {
  const std::string at = "backbone.layers." + std::to_string(l) + ".";
  const Tensor h = b.norm("input_norm", x, at + "norm", {.eps = c.rms_norm_eps});
  return b.add("residual", part(b, c, l, at + "mixer.", h), x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const NemotronHConfig c = read_nemotron_h_config(config);
  Definition made = define_decoder(c, tensors,
                                   {.embedding = "backbone.embeddings.weight",
                                    .last_norm = "backbone.norm_f",
                                    .norm = {.eps = c.rms_norm_eps},
                                    .layer = layer_of(c, layer)});
  made.info.recurrent = c.has(NemotronPart::kMamba);
  return made;
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "nemotron_h",
      .doc = "Nemotron-H, Nemotron Nano 2, Nemotron 3",
      .supports =
          "Mamba-2, attention, MLPs and mixtures in any order (layers_block_type, hybrid_override_pattern), "
          "experts of a part of each row (moe_latent_size), grouped heads, biases of MLPs and of Mamba's "
          "projections, every activation, tied embeddings",
      .refuses =
          "windows; layers that predict further tokens are left out; sequences begin with no page of "
          "others",
      .define = define,
      .trunk = {.root = "backbone."}};
  return family;
}

}  // namespace heddle::nemotron_h
