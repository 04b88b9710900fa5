#include "heddle/ops/layer_norm/layer_norm.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::layer_norm {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<LayerNorm>(args);
  require_rank("layer_norm", "x", a.x, 2);
  require_float("layer_norm", "x", a.x);
  require_shape("layer_norm", "weight", a.weight, {a.x.last()});
  require_float("layer_norm", "weight", a.weight);
  if (a.bias.rank > 0) {
    require_shape("layer_norm", "bias", a.bias, {a.x.last()});
    require_float("layer_norm", "bias", a.bias);
  }
  require(a.eps >= 0, "[layer_norm] eps = {}; must not be negative", a.eps);
  set_output("layer_norm", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return norm_axes(as<LayerNorm>(args).x.size[0], target);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<LayerNorm>(args);
  auto x = values.read(a.x), weight = values.read(a.weight), y = x;
  const size_t columns = weight.size();
  const auto bias = a.bias.exists() ? values.read(a.bias) : std::vector<double>(columns, 0.0);
  for (size_t row = 0; row < x.size(); row += columns) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < columns; ++i) sum += x[row + i];
    const double mean = sum / double(columns);
    for (size_t i = 0; i < columns; ++i) squares += (x[row + i] - mean) * (x[row + i] - mean);
    const double scale = 1 / std::sqrt(squares / double(columns) + double(a.eps));
    for (size_t i = 0; i < columns; ++i) y[row + i] = (x[row + i] - mean) * scale * weight[i] + bias[i];
  }
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<LayerNorm>(args);
  return {.form = RowForm::kRows,
          .matrices = {&a.x, &a.y},
          .vectors = {&a.weight, &a.bias},
          .takes_several = true,
          .takes_loose = true,
          .takes_shifted = true,
          .takes_fours = true,
          .takes_clusters = true,
          .is_centred = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<LayerNorm>("layer_norm", "y = (x - mean) / sqrt(variance + eps) * weight + bias, row by row");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<LayerNorm, 8>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.prologue = true, .input = "x", .output = "y", .wants_f32 = true};
    op.gradient = {{"layer_norm_backward"},
                   {"column_sum", {{"x", "dweight_parts"}, {"y", "dweight"}}},
                   {"column_sum", {{"x", "dbias_parts"}, {"y", "dbias"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::layer_norm
