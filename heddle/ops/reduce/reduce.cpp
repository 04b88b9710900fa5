#include "heddle/ops/reduce/reduce.h"

#include <algorithm>
#include <numeric>

#include "heddle/ir/row_kernel.h"
#include "heddle/ir/rules.h"

namespace heddle {

std::vector<Case> reduce_cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Reduce>(args);
  require_rank("reduce", "x", a.x, 2);
  require_float("reduce", "x", a.x);
  require(a.kind >= 0 && a.kind < kNumReduceKinds, "[reduce] kind = {}; must be 0 to {}", a.kind,
          kNumReduceKinds - 1);
  set_output("reduce", "y", a.y, DType::kF32, {a.x.size[0]});
  require_float("reduce", "y", a.y);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<Reduce>(args).x.size[0]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Reduce>(args);
  auto x = values.read(a.x);
  std::vector<double> y;
  for (auto row = x.begin(); row != x.end(); row += a.x.last()) {
    const double sum = std::accumulate(row, row + a.x.last(), 0.0);
    y.push_back(a.kind == kReduceMax    ? *std::max_element(row, row + a.x.last())
                : a.kind == kReduceMean ? sum / a.x.last()
                                        : sum);
  }
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Reduce>(args);
  return {.form = RowForm::kRows, .matrices = {&a.x}, .vectors = {&a.y}, .kind = a.kind, .has_long = true};
}

}  // namespace

const OpSpec& reduce_op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Reduce>("reduce", "y = sum, maximum or mean of each row of x");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<Reduce, 1>;
    op.reference = reference;
    op.cases = reduce_cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "x", .output = "y", .wants_f32 = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle
