#include "heddle/ops/reduce/column_sum.h"

#include "heddle/ir/rules.h"
#include "heddle/ops/reduce/over_rows_plan.h"

namespace heddle::column_sum {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ColumnSum>(args);
  require_rank("column_sum", "x", a.x, 2);
  require_float("column_sum", "x", a.x);
  set_output("column_sum", "y", a.y, DType::kF32, {a.x.last()});
  require_float("column_sum", "y", a.y);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return {{.dim = "N", .extent = as<ColumnSum>(args).x.last(), .preferred = target.gpu ? 256 : 1024}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return double(as<ColumnSum>(args).x.size[0]) * (t[1] - t[0]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ColumnSum>(args);
  const auto x = values.read(a.x);
  std::vector<double> y(size_t(a.x.last()));
  for (size_t i = 0; i < x.size(); ++i) y[i % y.size()] += x[i];
  values.write(a.y, y);
}

RowsWork work(const std::byte* args) {
  const auto& a = as<ColumnSum>(args);
  Tensor x = dense(a.x.dtype, {1, a.x.size[0], a.x.last()});
  x.stride[1] = a.x.stride[0];
  return {.x = x, .y = a.y, .kind = kReduceSum, .is_alone = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ColumnSum>("column_sum", "y = sum of the rows of x");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_over_rows_kernel(op, work);
    op.traits = {.input = "x", .output = "y", .wants_f32 = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::column_sum
