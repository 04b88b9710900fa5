#include "heddle/ops/cross_entropy/cross_entropy.h"

#include <cmath>

#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/cross_entropy/cross_entropy_rules.h"

namespace heddle::cross_entropy {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<CrossEntropy>(args);
  require_classes("cross_entropy", a);
  set_output("cross_entropy", "loss", a.loss, DType::kF32, {a.logits.size[0]});
  set_output("cross_entropy", "lse", a.lse, DType::kF32, {a.logits.size[0]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return norm_axes(as<CrossEntropy>(args).logits.size[0], target);
}

double flops(const std::byte* args, const TileCoord& t) {
  return 25.0 * (t[1] - t[0]) * as<CrossEntropy>(args).logits.last();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<CrossEntropy>(args);
  const ClassRows rows = class_rows(a, values);
  std::vector<double> loss, lse;
  for (size_t row = 0; row < rows.target.size(); ++row) {
    const std::span<const double> z = rows.row(row);
    double sum = 0;
    if (a.label_smoothing > 0)
      for (double v : z) sum += v;
    lse.push_back(log_sum_exp(z));
    const double s = double(a.label_smoothing), own = rows.is_column(row) ? z[size_t(rows.target[row])] : 0;
    const double all =
        lse[row] - (1 - s) * own - s * sum / double(z.size()) + double(a.z_loss) * lse[row] * lse[row];
    loss.push_back(rows.is_ignored(row) ? 0 : rows.is_column(row) ? all : std::nan(""));
  }
  values.write(a.loss, loss);
  values.write(a.lse, lse);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<CrossEntropy>(args);
  return {.form = a.logits.last() <= kShortRow ? RowForm::kRows : RowForm::kPasses,
          .matrices = {&a.logits},
          .takes_loose = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<CrossEntropy>(
        "cross_entropy", "loss = -log softmax of logits at target, and log sum of exp, row by row");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "logits", .output = "loss", .wants_f32 = true};
    op.gradient = {{"cross_entropy_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::cross_entropy
