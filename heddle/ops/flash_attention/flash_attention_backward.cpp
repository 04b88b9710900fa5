#include "heddle/ops/flash_attention/flash_attention_backward.h"

#include "heddle/ops/flash_attention/attention_common.h"
#include "heddle/ops/flash_attention/attention_tiles.h"

namespace heddle::flash_attention_backward {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<FlashAttentionBackward>(args);
  require_attention("flash_attention_backward", a);
  require_given("flash_attention_backward", a);
  set_output("flash_attention_backward", "dq", a.dq, a.q.dtype, a.q);
  set_output("flash_attention_backward", "dk", a.dk, a.k.dtype, a.k);
  set_output("flash_attention_backward", "dv", a.dv, a.v.dtype, a.v);
}

// A tile's rows are queries, and keys.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<FlashAttentionBackward>(args);
  return attention_axes(a, std::max(a.q.size[1], a.k.size[1]));
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<FlashAttentionBackward>(args);
  AttentionRegions r{a, t, out};
  r.all_queries(a.q), r.all_queries(a.dy), r.all_keys(a.k), r.all_keys(a.v);
  r.all_statistics(a.lse), r.all_statistics(a.delta);
  r.common();
  r.whole_if_there(a.q_num_blocks), r.whole_if_there(a.q_indices);
  r.queries(a.dq, Access::kWrite), r.keys(a.dk, Access::kWrite), r.keys(a.dv, Access::kWrite);
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionBackward>(args);
  const double row = 2.0 * heads_of_group(a) * (t[3] - t[2]);
  return row * (a.k.size[1] * (2.0 * a.q.last() + a.v.last()) +
                a.q.size[1] * (2.0 * a.q.last() + 2.0 * a.v.last()));
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionBackward>(args);
  const i64 rows = i64(t[3] - t[2]) * heads_of_group(a), dims = i64(a.q.last()) + a.v.last();
  return 4 * rows * (3 * dims + 4 * kAttentionChunk) + 2 * (kAttentionChunk + 1) * (dims + 2) * 4;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<FlashAttentionBackward>(args);
  const ExactAttention exact(a, values);
  using Pair = ExactAttention<FlashAttentionBackward>::Pair;
  const std::vector<double> dy = values.read(a.dy);
  const ExactScores scores(a, values);
  const size_t dim = size_t(a.q.last()), value_dim = size_t(a.v.last());
  std::vector<double> dq(exact.q().size()), dk(exact.k().size()), dv(exact.v().size());
  exact.each_pair([&](const Pair& p) {
    const auto [weight, gradient] = scores.of(exact, p);
    const double scaled = gradient * p.slope * exact.scale();
    const size_t q = exact.query_at(p), k = exact.key_at(p), v = exact.value_at(p), y = exact.y_at(p);
    for (size_t i = 0; i < dim; ++i)
      dq[q + i] += scaled * exact.k()[k + i], dk[k + i] += scaled * exact.q()[q + i];
    for (size_t i = 0; i < value_dim; ++i) dv[v + i] += weight * dy[y + i];
  });
  values.write(a.dq, dq);
  values.write(a.dk, dk);
  values.write(a.dv, dv);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<FlashAttentionBackward>(
        "flash_attention_backward", "the gradient of flash_attention by q, k and v; the same bits always");
    op.infer = infer;
    op.axes = axes;
    op.kernel = kernel;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::flash_attention_backward
