#include "heddle/ops/sympow/power_attention.h"

#include "heddle/ops/sympow/power_attention_reference.h"

namespace heddle::power_attention {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<PowerAttention>(args);
  require_power_attention("power_attention", a);
  const auto* size = a.q.size;
  set_output("power_attention", "y", a.y, a.v.dtype, {size[0], size[1], size[2], a.v.size[3]});
  set_output("power_attention", "total", a.total, DType::kF32, {size[0], size[1], size[2]});
  require_past("power_attention", a, a.v.size[3]);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<PowerAttention>(args);
  return head_axes(a.q, a.tiles());
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<PowerAttention>(args);
  const HeadRegions add(a.q, t, out);
  const i32 begin = a.tiles().begin(t[1]), end = a.tiles().end(t[1]);
  for (const Tensor* rows : {&a.q, &a.past}) add.add(*rows, Access::kRead, begin, end);
  for (const Tensor* keys : {&a.k, &a.v, &a.l})
    add.add(*keys, Access::kRead, a.tiles().chunk_begin(a.tiles().chunk_of(t[1])), end);
  for (const Tensor* made : {&a.y, &a.total}) add.add(*made, Access::kWrite, begin, end);
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<PowerAttention>(args);
  const i32 begin = a.tiles().begin(t[1]), end = a.tiles().end(t[1]);
  const double keys = end - a.tiles().chunk_begin(a.tiles().chunk_of(t[1]));
  return 2.0 * (end - begin) * keys * (a.q.size[3] + a.v.size[3]);
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<PowerAttention>(args);
  return i64(4) * (kChunkRows * (2 * a.q.size[3] + 3 * a.v.size[3] + 2 * kChunkRows + 6) + a.v.size[3]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<PowerAttention>(args);
  const auto q = values.read(a.q), k = values.read(a.k), v = values.read(a.v);
  const auto past = a.past.rank > 0 ? values.read(a.past) : std::vector<double>{};
  const Decays decays(a.l, a.y, values);
  std::vector<double> y(v.size()), total(v.size() / size_t(a.v.size[3]));
  for_pairs(a.q, a.tiles(), [&](i32 b, i32 h, i32 i, i32 j) {
    const double score = double(a.scale) * dot(head_row(q, a.q, b, i, h), head_row(k, a.k, b, j, h));
    const double weight = decays.from(b, h, i, j) * std::pow(score, a.power);
    const auto value = head_row(v, a.v, b, j, h);
    const auto to = head_row(y, a.y, b, i, h);
    for (size_t e = 0; e < to.size(); ++e) to[e] += weight * value[e];
    total[decays.at(b, i, h)] += weight;
  });
  for (i32 b = 0; b < a.q.size[0]; ++b)
    for (i32 i = 0; i < a.q.size[1]; ++i)
      for (i32 h = 0; h < a.q.size[2]; ++h) {
        const auto to = head_row(y, a.y, b, i, h);
        double& sum = total[decays.at(b, i, h)];
        if (!past.empty()) {
          const auto before = head_row(past, a.past, b, i, h);
          const double factor = decays.past(b, h, i, double(a.scale), a.power);
          for (size_t e = 0; e < to.size(); ++e) to[e] += factor * before[e];
          if (a.normalise) sum += factor * before[to.size()];
        }
        if (a.normalise)
          for (double& value : to) value /= sum + double(a.eps);
      }
  values.write(a.y, y);
  values.write(a.total, total);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<PowerAttention>(
        "power_attention", "causal attention in chunks with weights (scale <q, k>)^power and gates");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    op.gradient = {
        {"power_attention_backward"}, {"power_attention_keys_backward"}, {"power_attention_past_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::power_attention
