#include "heddle/ops/softmax/softmax_backward.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::softmax_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<SoftmaxBackward>(args);
  require_rank("softmax_backward", "y", a.y, 2);
  require_float("softmax_backward", "y", a.y);
  require_shape("softmax_backward", "dy", a.dy, {a.y.size[0], a.y.last()});
  require_float("softmax_backward", "dy", a.dy);
  set_output("softmax_backward", "dx", a.dx, a.y.dtype, {a.y.size[0], a.y.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return norm_axes(as<SoftmaxBackward>(args).y.size[0], target);
}

double flops(const std::byte* args, const TileCoord& t) {
  return 4.0 * (t[1] - t[0]) * as<SoftmaxBackward>(args).y.last();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<SoftmaxBackward>(args);
  const auto y = values.read(a.y), dy = values.read(a.dy);
  std::vector<double> dx(y.size());
  const size_t columns = size_t(a.y.last());
  for (size_t row = 0; row < y.size(); row += columns) {
    double sum = 0;
    for (size_t i = row; i < row + columns; ++i) sum += dy[i] * y[i];
    for (size_t i = row; i < row + columns; ++i) dx[i] = y[i] * (dy[i] - sum);
  }
  values.write(a.dx, dx);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<SoftmaxBackward>(args);
  return {.form = RowForm::kRows,
          .matrices = {&a.y, &a.dy, &a.dx},
          .has_long = true,
          .kept = 2,
          .keeps_part = true,
          .takes_loose = true,
          .takes_shifted = true,
          .takes_fours = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<SoftmaxBackward>("softmax_backward", "dx = y * (dy - sum of dy * y), row by row");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    return op;
  }();
  return spec;
}

}  // namespace heddle::softmax_backward
