#include "heddle/model/build/gemma4.h"

#include <array>
#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/model/build/activations.h"
#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"

namespace heddle {
namespace {

// The tensors of earlier layers that later ones take.
struct Shared {
  struct Kv {
    KvPages pages;
    Tensor keys, values;
  };
  std::array<Kv, 2> kv;  // [0] has those of layers that see all positions, [1] of those with a window
  Tensor inputs;         // [T, layers * per_layer_input]
};

// The norm and the turn of the leading heads of x, whose rows are ordered by `order`.
Tensor turn_heads(Builder& b, const Gemma4Config& c, const std::string& at, const std::vector<i32>& order,
                  Tensor x, const Heads& heads, Tensor rotary) {
  HeadNorms norms{.weights = {{at + "q_norm.weight", heads.dim}}, .order = order};
  if (heads.kv > 0) norms.weights.push_back({at + "k_norm.weight", heads.dim});
  x = b.head_norm("qk_norm", x, norms, heads, {.eps = c.rms_norm_eps});
  return b.rope("rope", x, rotary, heads, heads.dim);
}

Tensor attention(Builder& b, const Gemma4Config& c, i32 l, Tensor h, const Rotaries& rotaries,
                 Shared& shared) {
  const std::string at = layer_path(l) + "self_attn.";
  const bool slides = c.slides(l);
  const Tensor rotary = slides ? rotaries.other : rotaries.table;
  const Heads heads{c.num_attention_heads,
                    c.shares(l) ? 0
                    : slides    ? c.num_key_value_heads
                                : c.global_kv_heads,
                    slides ? c.head_dim : c.global_head_dim};
  const i32 width = heads.kv * heads.dim;
  Rows rows = rows_of(at + "q_proj", heads.key_column(), c.attention_bias);
  const char* values = c.keys_are_values && !slides ? "k_proj" : "v_proj";
  for (const char* name : {"k_proj", values}) {
    if (c.shares(l)) break;
    const Rows more = rows_of(at + name, width, c.attention_bias);
    rows.sources.push_back(more.sources[0]);
    rows.biases.insert(rows.biases.end(), more.biases.begin(), more.biases.end());
  }
  rows.order = pair_rotary_rows(heads.columns(), heads.query + heads.kv, heads.dim, heads.dim);
  Tensor x = turn_heads(b, c, at, rows.order, b.linear("qkv", h, rows), heads, rotary);

  Shared::Kv& kv = shared.kv[slides];
  if (!c.shares(l)) {
    kv.pages = b.pages(l, heads.kv, heads.dim, heads.dim);
    kv.keys = columns_of(x, heads.key_column(), width);
    kv.values = b.head_norm("v_norm", columns_of(x, heads.value_column(), width), {},
                            {.query = heads.kv, .kv = 0, .dim = heads.dim}, {.eps = c.rms_norm_eps});
    b.append("append_keys", kv.keys, kv.pages.keys);
    b.append("append_values", kv.values, kv.pages.values);
  }
  const AttentionRows given{
      .q = columns_of(x, 0, heads.key_column()), .k = kv.keys, .v = kv.values, .latent = {}};
  h = b.attend("attention", given, kv.pages, {.window = c.windows[size_t(l)]});
  return b.linear("o", h, rows_of(at + "o_proj", c.hidden_size, c.attention_bias));
}

// (embedding + norm(projection of x)) / sqrt(2), for all layers.
Tensor inputs_of_layers(Builder& b, const Gemma4Config& c, Tensor x) {
  const i32 dim = c.per_layer_input, all = c.num_hidden_layers * dim;
  const Weight table =
      b.table("embed_per_layer", "model.embed_tokens_per_layer.weight", c.per_layer_vocab, all);
  const double root = double(round_to(table.data.dtype, float(std::sqrt(double(dim)))));
  Tensor own = b.travelling("layer_inputs.own", b.embed("layer_inputs.embedding", table, root));
  Tensor h = b.linear("layer_inputs.project", b.travelling("layer_inputs.x", x),
                      rows_of("model.per_layer_model_projection", all));
  h = b.scale("layer_inputs.scaled", h, 1 / std::sqrt(double(c.hidden_size)));
  h = b.head_norm("layer_inputs.norm", h, {.weights = {{"model.per_layer_projection_norm.weight", dim}}},
                  {.query = c.num_hidden_layers, .kv = 0, .dim = dim}, {.eps = c.rms_norm_eps});
  return b.scale("layer_inputs", b.sum("layer_inputs.sum", h, own), std::sqrt(0.5));
}

// The experts that a layer's MLP has next to it, of its input x. They and their router have norms of their own.
Tensor experts(Builder& b, const Gemma4Config& c, const std::string& at, Tensor x) {
  const Rms rms{.eps = c.rms_norm_eps};
  const Routing routing{.count = c.experts.count,
                        .taken = c.experts.taken,
                        .normalise = true,
                        .factors = at + "router.per_expert_scale",
                        .logit_scale = 1 / std::sqrt(double(c.hidden_size)),
                        .own_input = true};
  const ExpertNames names{.at = at, .router = "router.proj.weight"};
  const Tensor asked = b.rms_norm("router_norm", x, at + "router.scale", rms);
  const Tensor h = b.rms_norm("pre_experts_norm", x, at + "pre_feedforward_layernorm_2.weight", rms);
  return b.rms_norm("post_experts_norm",
                    mixture(b, names, c.moe_intermediate_size, c.hidden_act, routing, h, asked),
                    at + "post_feedforward_layernorm_2.weight", rms);
}

Tensor layer(Builder& b, const Gemma4Config& c, i32 l, Tensor x, const Rotaries& rotary, Shared& shared) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  if (l == 0 && c.per_layer_input > 0) shared.inputs = inputs_of_layers(b, c, x);

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  h = attention(b, c, l, h, rotary, shared);
  x = b.add("attention_residual", b.norm("post_attention_norm", h, at + "post_attention_layernorm", norm), x);

  const i32 inner = c.intermediate_size * (c.wide_shared_mlp && c.shares(l) ? 2 : 1);
  h = b.norm("pre_mlp_norm", x, at + "pre_feedforward_layernorm", norm);
  h = gated_mlp(b, GatedMlp{at + "mlp.", inner, c.hidden_act}, h);
  if (c.experts.count > 0) {
    h = b.norm("own_mlp_norm", h, at + "post_feedforward_layernorm_1", norm);
    h = b.sum("mlp_and_experts", h, experts(b, c, at, x));
  }
  x = b.add("mlp_residual", b.norm("post_mlp_norm", h, at + "post_feedforward_layernorm", norm), x);

  if (const i32 dim = c.per_layer_input; dim > 0) {
    h = b.linear("input_gate", b.travelling("gate_x", x), rows_of(at + "per_layer_input_gate", dim));
    h = b.gated_product("gated_input", h, columns_of(shared.inputs, l * dim, dim),
                        activation_kind(c.hidden_act));
    h = b.linear("project_input", h, rows_of(at + "per_layer_projection", c.hidden_size));
    h = b.norm("post_input_norm", h, at + "post_per_layer_input_norm", norm);
    x = b.add("input_residual", h, x);
  }
  return b.scale("scaled", x, at + "layer_scalar");
}

}  // namespace

Definition define_gemma4(const Gemma4Config& c, const Inventory& tensors) {
  return define_decoder(c, tensors,
                        {.norm = {.eps = c.rms_norm_eps},
                         .scaled_embedding = true,
                         .adds_only = false,
                         .logits = {.softcap = c.final_logit_softcapping},
                         .other_rope = c.local_rope,
                         .layers = [c]() -> LayerOfGraph {
                           return [c, shared = Shared()](Builder& b, i32 l, Tensor x,
                                                         const Rotaries& rotary) mutable {
                             return layer(b, c, l, x, rotary, shared);
                           };
                         }});
}

}  // namespace heddle
