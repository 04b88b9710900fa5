#include "heddle/ops/rms_norm/rms_norm.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::rms_norm {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RmsNorm>(args);
  require_rank("rms_norm", "x", a.x, 2);
  require_float("rms_norm", "x", a.x);
  require_shape("rms_norm", "weight", a.weight, {a.x.last()});
  require_float("rms_norm", "weight", a.weight);
  require(a.eps >= 0, "[rms_norm] eps = {}; must not be negative", a.eps);
  set_output("rms_norm", "y", a.y, a.x.dtype, {a.x.size[0], a.x.size[1]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return norm_axes(as<RmsNorm>(args).x.size[0], target);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RmsNorm>(args);
  auto x = values.read(a.x), weight = values.read(a.weight), y = x;
  const size_t columns = weight.size();
  for (size_t row = 0; row < x.size(); row += columns) {
    double squares = 0;
    for (size_t i = 0; i < columns; ++i) squares += x[row + i] * x[row + i];
    double scale = 1 / std::sqrt(squares / double(columns) + double(a.eps));
    for (size_t i = 0; i < columns; ++i) y[row + i] = x[row + i] * scale * weight[i];
  }
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<RmsNorm>(args);
  return {.form = RowForm::kRows,
          .matrices = {&a.x, &a.y},
          .vectors = {&a.weight},
          .takes_loose = true,
          .takes_shifted = true,
          .takes_fours = true,
          .takes_clusters = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<RmsNorm>("rms_norm", "y = x / sqrt(mean(x^2) + eps) * weight, row by row");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<RmsNorm, 4>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.prologue = true, .input = "x", .output = "y", .wants_f32 = true};
    op.gradient = {{"rms_norm_backward"}, {"column_sum", {{"x", "dweight_parts"}, {"y", "dweight"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::rms_norm
