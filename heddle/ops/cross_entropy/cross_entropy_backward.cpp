#include "heddle/ops/cross_entropy/cross_entropy_backward.h"

#include <cmath>

#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/cross_entropy/cross_entropy_rules.h"

namespace heddle::cross_entropy_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<CrossEntropyBackward>(args);
  require_classes("cross_entropy_backward", a);
  require_shape("cross_entropy_backward", "lse", a.lse, {a.logits.size[0]});
  require_shape("cross_entropy_backward", "dloss", a.dloss, {a.logits.size[0]});
  if (a.dlse.rank > 0) require_shape("cross_entropy_backward", "dlse", a.dlse, {a.logits.size[0]});
  set_output("cross_entropy_backward", "dlogits", a.dlogits, a.logits.dtype,
             {a.logits.size[0], a.logits.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<CrossEntropyBackward>(args);
  return matrix_axes(a.logits.size[0], a.logits.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<CrossEntropyBackward>(args);
  const ClassRows rows = class_rows(a, values);
  const auto lse = values.read(a.lse), dloss = values.read(a.dloss);
  const auto dlse = a.dlse.exists() ? values.read(a.dlse) : std::vector<double>(lse.size(), 0.0);
  const double cap = double(a.softcap), s = double(a.label_smoothing);
  std::vector<double> dlogits;
  for (size_t row = 0; row < rows.target.size(); ++row)
    for (size_t i = 0; i < rows.columns; ++i) {
      const double z = rows.row(row)[i], p = std::exp(z - lse[row]), t = cap > 0 ? z / cap : 0;
      const double own = double(i) == rows.target[row] ? 1 - s : 0;
      double of_loss = (1 + 2 * double(a.z_loss) * lse[row]) * p - own - s / double(rows.columns);
      if (!rows.is_column(row)) of_loss = std::nan("");
      const double given = rows.is_ignored(row) ? 0 : dloss[row] * of_loss;
      dlogits.push_back((given + (a.dlse.exists() ? dlse[row] * p : 0)) * (1 - t * t));
    }
  values.write(a.dlogits, dlogits);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<CrossEntropyBackward>(args);
  return {.form = a.logits.last() <= kShortRow ? RowForm::kRows : RowForm::kStretches,
          .matrices = {&a.logits, &a.dlogits},
          .takes_loose = true,
          .adds_up = false};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<CrossEntropyBackward>("cross_entropy_backward",
                                            "dlogits of cross_entropy, also in place of logits");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<30>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "logits", .output = "dlogits", .in_place = true, .spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::cross_entropy_backward
