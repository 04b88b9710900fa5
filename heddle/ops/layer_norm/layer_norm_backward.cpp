#include "heddle/ops/layer_norm/layer_norm_backward.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/part_rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::layer_norm_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<LayerNormBackward>(args);
  require_rank("layer_norm_backward", "x", a.x, 2);
  require_float("layer_norm_backward", "x", a.x);
  require_shape("layer_norm_backward", "weight", a.weight, {a.x.last()});
  require_float("layer_norm_backward", "weight", a.weight);
  require_shape("layer_norm_backward", "dy", a.dy, {a.x.size[0], a.x.last()});
  require_float("layer_norm_backward", "dy", a.dy);
  if (a.dsum.rank > 0) {
    require_shape("layer_norm_backward", "dsum", a.dsum, {a.x.size[0], a.x.last()});
    require_float("layer_norm_backward", "dsum", a.dsum);
  }
  require(a.eps >= 0, "[layer_norm_backward] eps = {}; must not be negative", a.eps);
  set_output("layer_norm_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
  set_parts("layer_norm_backward", "dweight_parts", a.dweight_parts, a.x, a.part_rows, a.kAtWork);
  set_parts("layer_norm_backward", "dbias_parts", a.dbias_parts, a.x, a.part_rows, a.kAtWork);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<LayerNormBackward>(args);
  return part_axes(a.dweight_parts);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<LayerNormBackward>(args);
  for (const Tensor* rows : {&a.x, &a.dy, &a.dsum, &a.dx})
    if (rows->rank > 0)
      rows_of_parts(*rows, rows == &a.dx ? Access::kWrite : Access::kRead, t, a.parts(), {0, a.x.last()},
                    out);
  out.push_back(whole(a.weight, Access::kRead));
  for (const Tensor* parts : {&a.dweight_parts, &a.dbias_parts})
    out.push_back(part_of(*parts, Access::kWrite, {{t[0], t[1]}, {0, a.x.last()}}));
}

struct Statistics {
  double mean = 0, scale = 0, mean_given = 0, along = 0;  // along: mean of g * z
};

Statistics statistics(std::span<const double> x, std::span<const double> dy, std::span<const double> weight,
                      double eps) {
  Statistics s;
  const double columns = double(x.size());
  for (double v : x) s.mean += v / columns;
  double variance = 0;
  for (double v : x) variance += (v - s.mean) * (v - s.mean) / columns;
  s.scale = 1 / std::sqrt(variance + eps);
  for (size_t i = 0; i < x.size(); ++i) {
    s.mean_given += dy[i] * weight[i] / columns;
    s.along += dy[i] * weight[i] * (x[i] - s.mean) * s.scale / columns;
  }
  return s;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<LayerNormBackward>(args);
  const auto x = values.read(a.x), weight = values.read(a.weight), dy = values.read(a.dy);
  const size_t columns = weight.size();
  std::vector<double> dx(x.size()), dweight(size_t(a.dweight_parts.size[0]) * columns), dbias(dweight.size());
  for (size_t row = 0; row < x.size() / columns; ++row) {
    const size_t at = row * columns, part = row % size_t(a.parts()) * columns;
    const Statistics s = statistics(std::span(x).subspan(at, columns), std::span(dy).subspan(at, columns),
                                    weight, double(a.eps));
    for (size_t i = 0; i < columns; ++i) {
      const double z = (x[at + i] - s.mean) * s.scale;
      dx[at + i] = s.scale * (weight[i] * dy[at + i] - s.mean_given - z * s.along);
      dweight[part + i] += dy[at + i] * z;
      dbias[part + i] += dy[at + i];
    }
  }
  if (a.dsum.exists()) {
    const auto dsum = values.read(a.dsum);
    for (size_t i = 0; i < dx.size(); ++i) dx[i] += dsum[i];
  }
  values.write(a.dx, dx);
  values.write(a.dweight_parts, dweight);
  values.write(a.dbias_parts, dbias);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<LayerNormBackward>(args);
  return {.form = RowForm::kParts,
          .matrices = {&a.x, &a.dy, &a.dsum, &a.dx},
          .vectors = {&a.weight},
          .sums = {&a.dweight_parts, &a.dbias_parts},
          .at_work = a.kAtWork,
          .takes_several = true,
          .kept = 2,
          .takes_loose = true,
          .takes_shifted = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<LayerNormBackward>("layer_norm_backward",
                                         "dx of layer_norm, and dweight and dbias in parts of some rows");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = part_flops<LayerNormBackward, 18>;
    op.scratch = [](const std::byte* args, const TileCoord&) {
      return i64(as<LayerNormBackward>(args).most_rows()) * 2 * 4;  // mean and scale of each row
    };
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    return op;
  }();
  return spec;
}

}  // namespace heddle::layer_norm_backward
