#include "heddle/ops/attention/attention_merge.h"

#include <algorithm>
#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::attention_merge {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<AttentionMerge>(args);
  require_record("attention_merge", "step", a.step);
  require_record("attention_merge", "state", a.state);
  require_rank("attention_merge", "part", a.part, 4);
  require_float("attention_merge", "part", a.part);
  require_shape("attention_merge", "stats", a.stats, {a.part.size[0], a.part.size[1], a.part.size[2], 2});
  require_dtype("attention_merge", "stats", a.stats, DType::kF32);
  require(
      a.block_rows > 0 && a.split_unit > 0 && a.window >= 0 && a.max_splits == a.part.size[2],
      "[attention_merge] block_rows = {}, split_unit = {}, window = {}, max_splits = {}, part is {}; must be "
      "positive, the window may be 0, and max_splits must be part's",
      a.block_rows, a.split_unit, a.window, a.max_splits, shape_text(a.part));
  set_output("attention_merge", "y", a.y, DType::kF32, {a.part.size[0], a.part.size[1] * a.part.size[3]});
}

// Heads stay with the workers near those that attended to them, where workers are many.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<AttentionMerge>(args);
  return {{.dim = "M", .extent = a.part.size[0], .preferred = 16},
          {.dim = "H", .extent = a.part.size[1], .preferred = target.gpu ? 1 : 0}};
}

// y holds the heads side by side in its columns.
void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<AttentionMerge>(args);
  const i32 head_dim = a.part.last();
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.state, Access::kRead));
  for (const Tensor* made : {&a.part, &a.stats})
    out.push_back(
        part_of(*made, Access::kRead, {{t[0], t[1]}, {t[2], t[3]}, {0, made->size[2]}, {0, made->last()}}));
  if (a.y.exists())
    out.push_back(part_of(a.y, Access::kWrite, {{t[0], t[1]}, {t[2] * head_dim, t[3] * head_dim}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<AttentionMerge>(args);
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * a.part.size[2] * a.part.size[3];
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<AttentionMerge>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  auto part = values.read(a.part), stats = values.read(a.stats), y = values.read(a.y);
  const size_t heads = size_t(a.part.size[1]), head_dim = size_t(a.part.size[3]);
  for (i32 row = 0; row < a.part.size[0]; ++row) {
    const AttentionBlock block = attention_block_of_row(host, device, a.cut(), row);
    for (size_t head = 0; head < heads; ++head) {
      const size_t first = (size_t(row) * heads + head) * size_t(a.max_splits);
      double best = stats[2 * first], total = 0;
      for (size_t s = first; s < first + size_t(block.splits); ++s) best = std::max(best, stats[2 * s]);
      std::vector<double> sum(head_dim);
      for (size_t s = first; s < first + size_t(block.splits); ++s) {
        const double weight = std::exp(stats[2 * s] - best) * stats[2 * s + 1];
        total += weight;
        for (size_t i = 0; i < head_dim; ++i) sum[i] += weight * part[s * head_dim + i];
      }
      for (size_t i = 0; i < head_dim; ++i) y[(size_t(row) * heads + head) * head_dim + i] = sum[i] / total;
    }
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<AttentionMerge>("attention_merge", "joins the splits of attention in a fixed order");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.prologue = true, .input = "part", .output = "y"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::attention_merge
