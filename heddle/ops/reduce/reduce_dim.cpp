#include "heddle/ops/reduce/reduce_dim.h"

#include <algorithm>
#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/ir/values.h"
#include "heddle/ops/reduce/over_rows_plan.h"

namespace heddle::reduce_dim {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ReduceDim>(args);
  require_rank("reduce_dim", "x", a.x, 3);
  require_float("reduce_dim", "x", a.x);
  require(a.kind >= 0 && a.kind < kNumReduceKinds, "[reduce_dim] kind = {}; must be 0 to {}", a.kind,
          kNumReduceKinds - 1);
  set_output("reduce_dim", "y", a.y, a.result == kResultF32 ? DType::kF32 : a.x.dtype,
             {a.x.size[0], a.x.size[2]});
  require_float("reduce_dim", "y", a.y);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<ReduceDim>(args);
  return {{.dim = "G", .extent = a.x.size[0], .preferred = 16},
          {.dim = "D", .extent = a.x.size[2], .preferred = target.gpu ? 256 : 1024}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return double(as<ReduceDim>(args).x.size[1]) * (t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ReduceDim>(args);
  const auto x = values.read(a.x);
  const auto rows = size_t(a.x.size[1]), columns = size_t(a.x.size[2]);
  std::vector<double> y(size_t(a.x.size[0]) * columns, a.kind == kReduceMax ? -INFINITY : 0);
  for (size_t i = 0; i < x.size(); ++i) {
    double& out = y[i / (rows * columns) * columns + i % columns];
    out = a.kind == kReduceMax ? max_or_nan(out, x[i]) : out + x[i];
  }
  if (a.kind == kReduceMean)
    for (double& out : y) out /= double(rows);
  values.write(a.y, y);
}

RowsWork work(const std::byte* args) {
  const auto& a = as<ReduceDim>(args);
  return {.x = a.x, .y = a.y, .kind = a.kind};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<ReduceDim>("reduce_dim", "y = sum, maximum or mean of x over its last dimension but one");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_over_rows_kernel(op, work);
    op.traits = {.input = "x", .output = "y", .wants_f32 = true};
    op.gradient = {{"reduce_dim_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::reduce_dim
