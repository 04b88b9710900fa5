#include "heddle/ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::softmax {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Softmax>(args);
  require_rank("softmax", "x", a.x, 2);
  require_float("softmax", "x", a.x);
  set_output("softmax", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<Softmax>(args).x.size[0]);
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const i32 columns = as<Softmax>(args).x.last();
  return columns > kMostKeptWeights ? 0 : 4 * i64(columns);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Softmax>(args);
  auto y = values.read(a.x);
  for (auto row = y.begin(); row != y.end(); row += a.x.last()) {
    const double top = *std::max_element(row, row + a.x.last());
    double sum = 0;
    for (i32 i = 0; i < a.x.last(); ++i) sum += row[i] = std::exp(row[i] - top);
    for (i32 i = 0; i < a.x.last(); ++i) row[i] /= sum;
  }
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Softmax>(args);
  return {.form = RowForm::kRows,
          .matrices = {&a.x, &a.y},
          .takes_several = true,
          .has_long = true,
          .kept = 1,
          .takes_loose = true,
          .takes_shifted = true,
          .takes_fours = true,
          .takes_clusters = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Softmax>("softmax", "y = softmax of x, row by row");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<Softmax, 40>;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "x", .output = "y", .in_place = true, .wants_f32 = true};
    op.gradient = {{"softmax_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::softmax
