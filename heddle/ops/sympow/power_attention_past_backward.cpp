#include "heddle/ops/sympow/power_attention_past_backward.h"

#include "heddle/ops/sympow/power_attention_reference.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle::power_attention_past_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<PowerAttentionPastBackward>(args);
  require_rank("power_attention_past_backward", "past", a.past, 4);
  require_rank("power_attention_past_backward", "y", a.y, 4);
  require_heads("power_attention_past_backward", "y", a.y, a.past, a.y.size[3]);
  require_given("power_attention_past_backward", a, a.y);
  require_past("power_attention_past_backward", a, a.y.size[3]);
  if (a.l.rank > 0) require_rows("power_attention_past_backward", "l", a.l, a.y);
  const auto* size = a.past.size;
  set_output("power_attention_past_backward", "dpast", a.dpast, a.past.dtype,
             {size[0], size[1], size[2], size[3]});
}

// Rows in tiles, as if there were one chunk.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<PowerAttentionPastBackward>(args);
  return head_axes(a.past, {a.past.size[1], 0});
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<PowerAttentionPastBackward>(args);
  const HeadRegions add(a.past, t, out);
  const ChunkTiles tiles(a.past.size[1], 0);
  for (const Tensor* rows : {&a.l, &a.y, &a.total, &a.dy, &a.dtotal})
    add.add(*rows, Access::kRead, tiles.begin(t[1]), tiles.end(t[1]));
  add.add(a.dpast, Access::kWrite, tiles.begin(t[1]), tiles.end(t[1]));
}

double flops(const std::byte* args, const TileCoord&) {
  return 4.0 * kChunkRows * as<PowerAttentionPastBackward>(args).y.size[3];
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<PowerAttentionPastBackward>(args);
  const auto y = values.read(a.y), dy = values.read(a.dy);
  const auto total = values.read(a.total), dtotal = values.read(a.dtotal);
  const Decays decays(a.l, a.y, values);
  std::vector<double> dpast(size_t(elements(a.dpast)));
  for (i32 b = 0; b < a.y.size[0]; ++b)
    for (i32 i = 0; i < a.y.size[1]; ++i)
      for (i32 h = 0; h < a.y.size[2]; ++h) {
        const auto given = head_row(dy, a.dy, b, i, h);
        const auto to = head_row(dpast, a.dpast, b, i, h);
        const size_t at = decays.at(b, i, h);
        const RowGradient row =
            row_gradient(a.normalise, double(a.eps), total[at], dtotal[at], head_row(y, a.y, b, i, h), given);
        const double factor = decays.past(b, h, i, double(a.scale), a.power);
        for (size_t e = 0; e < given.size(); ++e) to[e] = factor * row.inverse * given[e];
        if (a.normalise) to[given.size()] = factor * row.total;
      }
  values.write(a.dpast, dpast);
}

KernelPlan kernel(const std::byte* args, const KernelTarget&, const OpConfig&) {
  const auto& a = as<PowerAttentionPastBackward>(args);
  const i32 rest = a.dpast.size[3] - a.y.size[3];
  const std::string why_rest =
      rest == 0 || rest == 8 ? "" : fmt::format("past has {} columns more than y", rest);
  return plan_of_lanes(
      a.y, {why_lanes("y", a.y), why_lanes("dy", a.dy), why_lanes("dpast", a.dpast), why_rest}, 0);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<PowerAttentionPastBackward>("power_attention_past_backward", "dpast of power_attention");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = [](const std::byte*, const TileCoord&) { return i64(12) * kChunkRows; };
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::power_attention_past_backward
