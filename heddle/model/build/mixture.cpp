#include "heddle/model/build/mixture.h"

#include "heddle/model/build/activations.h"

namespace heddle {
namespace {

// Stacks the named parts of all experts.
Rows of_experts(const ExpertNames& names, i32 experts, std::initializer_list<const char*> parts, i32 rows) {
  Rows made;
  for (i32 e = 0; e < experts; ++e)
    for (const char* part : parts)
      made.sources.push_back({names.at + "experts." + std::to_string(e) + "." + part + ".weight", rows});
  return made;
}

// Makes gate and up rows of each expert adjacent.
std::vector<i32> interleave_each(i32 experts, i32 inner) {
  const std::vector<i32> one = interleave_halves(inner);
  std::vector<i32> order;
  for (i32 e = 0; e < experts; ++e)
    for (i32 row : one) order.push_back(e * 2 * inner + row);
  return order;
}

}  // namespace

Rows transposed_experts(const std::string& tensor, i32 experts, i32 rows, i32 cols) {
  Rows made;
  for (i32 e = 0; e < experts; ++e)
    made.sources.push_back(
        {.tensor = tensor, .rows = rows, .transposed = true, .begin = e * cols, .all = experts * cols});
  return made;
}

std::string block_of_experts(const Builder& b, const std::string& at) {
  return at + (b.has(at + "mlp.gate.weight") ? "mlp." : "block_sparse_moe.");
}

Tensor mixture(Builder& b, const ExpertNames& names, i32 inner, HiddenAct act, const Routing& routing,
               Tensor h, Tensor asked) {
  const i32 hidden = h.last();
  const i32 count = routing.count;
  Rows gate_up, down;
  const std::string input = names.at + names.stacked_input, output = names.at + names.stacked_output;
  const std::vector<int64_t> plain = {count, 2 * inner, hidden};
  using Stack = ExpertNames::Stack;
  const bool by_columns =
      names.stack == Stack::kColumns || (names.stack == Stack::kEither && b.shape(input) != plain);
  if (b.has(input) && by_columns) {
    gate_up = transposed_experts(input, count, 2 * inner, hidden);
    down = transposed_experts(output, count, hidden, inner);
  } else if (b.has(input)) {
    gate_up.sources = {{input, count * 2 * inner}};
    down.sources = {{output, count * hidden}};
  } else {
    gate_up = of_experts(names, count, {names.gate, names.up}, inner);
    down = of_experts(names, count, {names.down}, hidden);
  }
  gate_up.order = interleave_each(count, inner);

  const Routes routes =
      b.route("router", asked.exists() ? asked : h, {.sources = {{names.at + names.router, count}}}, routing);
  if (routing.scales_input) h = b.expert_sum("experts.input", h, routes);
  h = b.expert_linear("experts.gate_up", h, routes, gate_up);
  h = b.gate("experts.gate", h, activation_kind(act));
  h = b.expert_linear("experts.down", h, routes, down);
  if (!routing.scales_input) return b.expert_sum("experts.sum", h, routes);
  b.end_experts();
  return h;
}

Tensor plain_experts(Builder& b, const std::string& at, i32 inner, HiddenAct act, const Routes& routes,
                     Tensor x) {
  const auto rows = [&](const char* part, i32 count) -> Rows {
    const std::string stacked = at + "experts." + part;
    if (b.has(stacked)) return {.sources = {{stacked, routes.experts * count}}};
    return of_experts({.at = at}, routes.experts, {part}, count);
  };
  const i32 columns = x.last();
  Tensor y = b.expert_linear("experts.up", x, routes, rows("up_proj", inner));
  y = b.activate("experts.act", y, activation_kind(act));
  y = b.expert_linear("experts.down", y, routes, rows("down_proj", columns));
  return b.expert_sum("experts.sum", y, routes);
}

Tensor grouped_mixture(Builder& b, const GroupedExperts& e, HiddenAct act, const std::string& at, Tensor h,
                       bool bias) {
  Routing routing{.count = e.n_routed_experts,
                  .taken = e.num_experts_per_tok,
                  .sigmoid = e.scores_by_sigmoid,
                  .normalise = e.norm_topk_prob,
                  .groups = e.n_group,
                  .groups_kept = e.topk_group,
                  .scores_of_group = e.scores_of_group,
                  .scale = e.routed_scaling_factor};
  if (e.scores_by_sigmoid) {
    const std::string beside = at + "e_score_correction_bias";  // as EXAONE's files name it
    routing.bias = b.has(beside) ? beside : at + "gate.e_score_correction_bias";
  }
  const Tensor chosen = mixture(b, {at}, e.moe_intermediate_size, act, routing, h);
  const GatedMlp shared{at + "shared_experts.", e.moe_intermediate_size * e.n_shared_experts, act, bias};
  return b.sum("experts.all", chosen, gated_mlp(b, shared, h));
}

Tensor grouped_layer(Builder& b, const DecoderConfig& c, const GroupedExperts& experts, i32 l, Tensor x,
                     const SelfAttention& attention) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = l < experts.first_k_dense_replace ? gated_mlp(b, c, at, h)
                                        : grouped_mixture(b, experts, c.hidden_act, at + "mlp.", h);
  return b.add("mlp_residual", h, x);
}

}  // namespace heddle
