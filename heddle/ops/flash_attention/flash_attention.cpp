#include "heddle/ops/flash_attention/flash_attention.h"

#include "heddle/ops/flash_attention/attention_common.h"
#include "heddle/ops/flash_attention/attention_tiles.h"

namespace heddle::flash_attention {

std::vector<Case> cases();
std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target);
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<FlashAttention>(args);
  require_attention("flash_attention", a);
  const i32 batch = a.q.size[0], rows = a.q.size[1], heads = a.q.size[2];
  if (a.sinks.rank > 0) {
    require_shape("flash_attention", "sinks", a.sinks, {heads});
    require_float("flash_attention", "sinks", a.sinks);
  }
  require((a.y_in.rank > 0) == (a.lse_in.rank > 0),
          "[flash_attention] only one of y_in and lse_in is given; must be both or none");
  if (a.y_in.rank > 0) {
    require_shape("flash_attention", "y_in", a.y_in, {batch, rows, heads, a.v.last()});
    require_float("flash_attention", "y_in", a.y_in);
    require_shape("flash_attention", "lse_in", a.lse_in, {batch, heads, rows});
    require_dtype("flash_attention", "lse_in", a.lse_in, DType::kF32);
  }
  set_output("flash_attention", "y", a.y, a.q.dtype, {batch, rows, heads, a.v.last()});
  set_output("flash_attention", "lse", a.lse, DType::kF32, {batch, heads, rows});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<FlashAttention>(args);
  return attention_axes(a, a.q.size[1]);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<FlashAttention>(args);
  AttentionRegions r{a, t, out};
  r.queries(a.q, Access::kRead), r.all_keys(a.k), r.all_keys(a.v);
  r.common();
  r.whole_if_there(a.sinks);
  if (a.y_in.exists()) r.queries(a.y_in, Access::kRead), r.statistics(a.lse_in, Access::kRead);
  r.queries(a.y, Access::kWrite), r.statistics(a.lse, Access::kWrite);
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttention>(args);
  return 2.0 * (t[3] - t[2]) * heads_of_group(a) * a.k.size[1] * (a.q.last() + a.v.last());
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttention>(args);
  const i64 rows = i64(t[3] - t[2]) * heads_of_group(a), dims = a.q.last() + 2 * i64(a.v.last());
  return 4 * rows * (dims + 2 * kAttentionChunk + 4) + kAttentionChunk * (dims + 8) * 4;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<FlashAttention>(args);
  const ExactAttention exact(a, values);
  using Pair = ExactAttention<FlashAttention>::Pair;
  const size_t rows = size_t(elements(a.lse)), dim = size_t(a.v.last());
  const double none = -std::numeric_limits<double>::infinity();
  const auto weight_of = [&](double score, double top) { return score == none ? 0 : std::exp(score - top); };
  std::vector<double> y(size_t(elements(a.y))), sinks(rows, none), earlier(rows, none), total(rows);
  if (a.sinks.exists()) {
    const std::vector<double> all = values.read(a.sinks);
    for (size_t i = 0; i < rows; ++i) sinks[i] = all[i / size_t(a.q.size[1]) % all.size()];
  }
  if (a.lse_in.exists()) earlier = values.read(a.lse_in);
  std::vector<double> top(rows);
  for (size_t i = 0; i < rows; ++i) top[i] = std::max(sinks[i], earlier[i]);
  exact.each_pair([&](const Pair& p) { top[exact.lse_at(p)] = std::max(top[exact.lse_at(p)], p.score); });
  for (size_t i = 0; i < rows; ++i) total[i] = weight_of(sinks[i], top[i]) + weight_of(earlier[i], top[i]);
  exact.each_pair([&](const Pair& p) {
    const double weight = weight_of(p.score, top[exact.lse_at(p)]);
    total[exact.lse_at(p)] += weight;
    for (size_t i = 0; i < dim; ++i) y[exact.y_at(p) + i] += weight * exact.v()[exact.value_at(p) + i];
  });
  const std::vector<double> y_in = a.y_in.exists() ? values.read(a.y_in) : std::vector<double>();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t line = i / dim, head = line % size_t(a.q.size[2]), row = line / size_t(a.q.size[2]),
                 batch = row / size_t(a.q.size[1]);
    const size_t at = (batch * size_t(a.q.size[2]) + head) * size_t(a.q.size[1]) + row % size_t(a.q.size[1]);
    if (earlier[at] != none) y[i] += weight_of(earlier[at], top[at]) * y_in[i];
    if (total[at] != 0) y[i] /= total[at];
  }
  for (size_t i = 0; i < rows; ++i)
    if (total[i] != 0) top[i] += std::log(total[i]);
  values.write(a.y, y);
  values.write(a.lse, top);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<FlashAttention>(
        "flash_attention",
        "attention of whole sequences, in one pass over the keys; lse: log of the sum of exp(score)");
    op.infer = infer;
    op.axes = axes;
    op.configs = configs;
    op.kernel = kernel;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    op.gradient = {{"flash_attention_delta"},          {"flash_attention_query_blocks"},
                   {"flash_attention_backward"},       {"flash_attention_bias_backward"},
                   {"flash_attention_sinks_backward"}, {"flash_attention_earlier_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::flash_attention
