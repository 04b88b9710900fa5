#include "heddle/ops/sympow/power_attention_backward.h"

#include "heddle/ops/sympow/power_attention_reference.h"

namespace heddle::power_attention_backward {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<PowerAttentionBackward>(args);
  require_power_attention("power_attention_backward", a);
  require_given("power_attention_backward", a, a.v);
  require_past("power_attention_backward", a, a.v.size[3]);
  const auto* size = a.q.size;
  set_output("power_attention_backward", "dq", a.dq, a.q.dtype, {size[0], size[1], size[2], size[3]});
  set_output("power_attention_backward", "dl_rows", a.dl_rows, DType::kF32, {size[0], size[1], size[2]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<PowerAttentionBackward>(args);
  return head_axes(a.q, a.tiles());
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<PowerAttentionBackward>(args);
  const HeadRegions add(a.q, t, out);
  const i32 begin = a.tiles().begin(t[1]), end = a.tiles().end(t[1]);
  for (const Tensor* rows : {&a.q, &a.past, &a.y, &a.total, &a.dy, &a.dtotal})
    add.add(*rows, Access::kRead, begin, end);
  for (const Tensor* keys : {&a.k, &a.v, &a.l})
    add.add(*keys, Access::kRead, a.tiles().chunk_begin(a.tiles().chunk_of(t[1])), end);
  for (const Tensor* made : {&a.dq, &a.dl_rows}) add.add(*made, Access::kWrite, begin, end);
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<PowerAttentionBackward>(args);
  const i32 begin = a.tiles().begin(t[1]), end = a.tiles().end(t[1]);
  const double keys = end - a.tiles().chunk_begin(a.tiles().chunk_of(t[1]));
  return 2.0 * (end - begin) * keys * (2 * a.q.size[3] + a.v.size[3]);
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<PowerAttentionBackward>(args);
  return i64(4) * kChunkRows * (5 * a.q.size[3] + 2 * a.v.size[3] + 4 * kChunkRows + 10);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<PowerAttentionBackward>(args);
  PairGradients<PowerAttentionBackward> given(a, values);
  std::vector<double> dq(given.q.size()), dl(given.total.size());
  for_pairs(a.q, a.tiles(), [&](i32 b, i32 h, i32 i, i32 j) {
    const auto pair = given.of(b, h, i, j);
    const auto key = head_row(given.k, a.k, b, j, h);
    const auto to = head_row(dq, a.dq, b, i, h);
    for (size_t d = 0; d < to.size(); ++d) to[d] += double(a.scale) * pair.score * key[d];
    dl[given.decays.at(b, i, h)] += pair.gate;
  });
  if (a.past.rank > 0) {
    const auto past = values.read(a.past);
    const size_t columns = size_t(a.v.size[3]);
    for (i32 b = 0; b < a.q.size[0]; ++b)
      for (i32 i = 0; i < a.q.size[1]; ++i)
        for (i32 h = 0; h < a.q.size[2]; ++h) {
          const auto before = head_row(past, a.past, b, i, h);
          const RowGradient row = given.row(b, i, h);
          double sum = row.inverse * dot(head_row(given.dy, a.dy, b, i, h), before.first(columns));
          if (a.normalise) sum += row.total * before[columns];
          dl[given.decays.at(b, i, h)] += sum * given.decays.past(b, h, i, double(a.scale), a.power);
        }
  }
  values.write(a.dq, dq);
  values.write(a.dl_rows, dl);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<PowerAttentionBackward>("power_attention_backward",
                                              "dq of power_attention, and the rows' part of dl");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
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

}  // namespace heddle::power_attention_backward
