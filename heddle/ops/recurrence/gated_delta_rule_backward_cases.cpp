#include <algorithm>

#include "heddle/ir/registry.h"
#include "heddle/ops/recurrence/delta_examples.h"
#include "heddle/ops/recurrence/gated_delta_rule.h"
#include "heddle/ops/recurrence/gated_delta_rule_backward.h"

namespace heddle::gated_delta_rule_backward {
namespace {

// Fills in what the forward pass leaves, in fp64 from the inputs as they are stored.
void prepare(std::byte* bytes, Values& values) {
  tame_delta<GatedDeltaRuleBackward>(bytes, values);
  const auto& a = as<GatedDeltaRuleBackward>(bytes);
  GatedDeltaRule forward{.q = a.q, .k = a.k, .v = a.v, .g = a.g, .beta = a.beta, .s0 = a.s0, .y = a.dy};
  forward.last = a.last, forward.error = a.error, forward.starts = a.starts;
  const auto dy = values.read(a.dy);
  get_op("gated_delta_rule").reference(reinterpret_cast<const std::byte*>(&forward), values);
  values.write(a.dy, dy);
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const DeltaExample& e : kDeltaExamples)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
      auto a = delta_inputs<GatedDeltaRuleBackward>(e, type);
      const Tensor state = input(DType::kF32, {e.batch, e.heads, e.dim, e.columns});
      a.error = input(DType::kF32, {e.batch, e.positions, e.heads, e.columns});
      a.starts = input(DType::kF32, {e.batch, e.heads, delta_chunks(e.positions) * e.dim, e.columns});
      a.dy = a.v, a.last = state;
      if (e.begins) a.dlast = state;
      if (e.begins && e.batch > 1) a.derror = a.error, a.dstarts = a.starts;
      Case one = make_case(a, rounding_bound(type, 512));
      one.prepare = prepare;
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::gated_delta_rule_backward
