#include "heddle/ops/rms_norm/rms_norm_residual.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::rms_norm_residual {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RmsNormResidual>(args);
  const char* const op = "rms_norm_residual";
  require_rank(op, "x", a.x, 2);
  require_float(op, "x", a.x);
  require_shape(op, "residual", a.residual, {a.x.size[0], a.x.last()});
  require_float(op, "residual", a.residual);
  require_shape(op, "weight", a.weight, {a.x.last()});
  require_float(op, "weight", a.weight);
  require(a.eps >= 0, "[{}] eps = {}; must not be negative", op, a.eps);
  set_output(op, "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
  set_output(op, "sum", a.sum, a.residual.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return norm_axes(as<RmsNormResidual>(args).x.size[0], target);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RmsNormResidual>(args);
  auto sum = values.read(a.x), y = sum;
  const auto residual = values.read(a.residual), weight = values.read(a.weight);
  const size_t columns = weight.size();
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += residual[i];
  values.write(a.sum, sum);
  sum = values.read(a.sum);  // rounded
  for (size_t row = 0; row < sum.size(); row += columns) {
    double squares = 0;
    for (size_t i = 0; i < columns; ++i) squares += sum[row + i] * sum[row + i];
    const double scale = 1 / std::sqrt(squares / double(columns) + double(a.eps));
    for (size_t i = 0; i < columns; ++i) y[row + i] = sum[row + i] * scale * weight[i];
  }
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<RmsNormResidual>(args);
  return {.form = RowForm::kRows,
          .matrices = {&a.x, &a.residual, &a.y, &a.sum},
          .vectors = {&a.weight},
          .takes_loose = true,
          .takes_shifted = true,
          .takes_fours = true,
          .takes_clusters = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<RmsNormResidual>("rms_norm_residual", "sum = x + residual, y = rms_norm of sum, row by row");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<RmsNormResidual, 5>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.output = "y", .wants_f32 = true};
    op.gradient = {{"rms_norm_backward", {{"x", "sum"}}},
                   {"copy", {{"x", "dx"}, {"y", "dresidual"}}},
                   {"column_sum", {{"x", "dweight_parts"}, {"y", "dweight"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::rms_norm_residual
