#include "heddle/ops/attention/attention_sink.h"

#include <algorithm>
#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/ir/values.h"

namespace heddle::attention_sink {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<AttentionSink>(args);
  require_rank("attention_sink", "part", a.part, 4);
  require_float("attention_sink", "part", a.part);
  const i32 rows = a.part.size[0], heads = a.part.size[1];
  require(a.part.size[2] == 1, "[attention_sink] part is {}; it must be one split", shape_text(a.part));
  require_shape("attention_sink", "sinks", a.sinks, {heads});
  require_dtype("attention_sink", "sinks", a.sinks, DType::kF32);
  require_shape("attention_sink", "stats", a.stats, {rows, heads, 1, 2});
  require_dtype("attention_sink", "stats", a.stats, DType::kF32);
  set_output("attention_sink", "y", a.y, a.part.dtype, {rows, heads, 1, a.part.last()});
  set_output("attention_sink", "new_stats", a.new_stats, DType::kF32, {rows, heads, 1, 2});
  require_dtype("attention_sink", "new_stats", a.new_stats, DType::kF32);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<AttentionSink>(args);
  return {{.dim = "M", .extent = a.part.size[0], .preferred = 16},
          {.dim = "H", .extent = a.part.size[1], .preferred = target.gpu ? 4 : 0}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return double(t[1] - t[0]) * (t[3] - t[2]) * (as<AttentionSink>(args).part.last() + 40);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<AttentionSink>(args);
  const auto sinks = values.read(a.sinks), part = values.read(a.part), stats = values.read(a.stats);
  auto y = values.read(a.y), made = values.read(a.new_stats);
  const size_t heads = sinks.size(), dim = size_t(a.part.last());
  for (size_t i = 0; i < size_t(a.part.size[0]) * heads; ++i) {
    const double sink = sinks[i % heads], before = stats[2 * i], best = max_or_nan(before, sink);
    const double kept = stats[2 * i + 1] * std::exp(before - best), total = kept + std::exp(sink - best);
    for (size_t d = 0; d < dim; ++d) y[i * dim + d] = part[i * dim + d] * kept / total;
    made[2 * i] = best, made[2 * i + 1] = total;
  }
  values.write(a.y, y);
  values.write(a.new_stats, made);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<AttentionSink>("attention_sink", "gives each head's sink a share of its attention");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "part", .output = "y"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::attention_sink
