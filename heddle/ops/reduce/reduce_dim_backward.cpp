#include "heddle/ops/reduce/reduce_dim_backward.h"

#include <cmath>

#include "heddle/base/integer.h"
#include "heddle/ir/rules.h"
#include "heddle/ir/values.h"
#include "heddle/ops/reduce/over_rows_plan.h"

namespace heddle::reduce_dim_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ReduceDimBackward>(args);
  require_rank("reduce_dim_backward", "x", a.x, 3);
  require_float("reduce_dim_backward", "x", a.x);
  require_shape("reduce_dim_backward", "dy", a.dy, {a.x.size[0], a.x.size[2]});
  require_float("reduce_dim_backward", "dy", a.dy);
  require(a.kind >= 0 && a.kind < kNumReduceKinds, "[reduce_dim_backward] kind = {}; must be 0 to {}", a.kind,
          kNumReduceKinds - 1);
  set_output("reduce_dim_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.size[1], a.x.size[2]});
  require_float("reduce_dim_backward", "dx", a.dx);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<ReduceDimBackward>(args);
  return {{.dim = "G", .extent = a.x.size[0], .preferred = 16},
          {.dim = "D", .extent = a.x.size[2], .preferred = target.gpu ? 256 : 1024}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return double(as<ReduceDimBackward>(args).x.size[1]) * (t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ReduceDimBackward>(args);
  const auto x = values.read(a.x), dy = values.read(a.dy);
  const auto rows = size_t(a.x.size[1]), columns = size_t(a.x.size[2]);
  std::vector<double> dx(x.size());
  for (size_t out = 0; out < dy.size(); ++out) {
    const size_t first = out / columns * rows * columns + out % columns, end = first + rows * columns;
    double most = x[first], count = 0;
    for (size_t i = first; i < end; i += columns) most = max_or_nan(most, x[i]);
    for (size_t i = first; i < end; i += columns) count += a.kind == kReduceMax && x[i] == most ? 1 : 0;
    for (size_t i = first; i < end; i += columns)
      dx[i] = a.kind == kReduceMax    ? (std::isnan(most) ? most
                                         : x[i] == most   ? dy[out] / count
                                                          : 0)
              : a.kind == kReduceMean ? dy[out] / double(rows)
                                      : dy[out];
  }
  values.write(a.dx, dx);
}

bool is_dense(const Tensor& tensor) {
  const i64 columns = tensor.size[2], line = tensor.size[1] * columns;
  return (tensor.size[1] == 1 || tensor.stride[1] == columns) &&
         (tensor.size[0] == 1 || tensor.stride[0] == line);
}

std::string why_not(const ReduceDimBackward& a, const KernelTarget& target) {
  constexpr i32 kFirstArch = 80;
  if (target.arch < kFirstArch) return "it is written for compute capability 8.0 and later";
  for (const Tensor* tensor : {&a.dy, &a.dx})
    if (!is_wide_float(tensor->dtype))
      return fmt::format("{} has elements that are no floats", shape_text(*tensor));
  for (const Tensor* tensor : {&a.dx, &a.x})
    if (!is_dense(*tensor) && (tensor == &a.dx || a.kind == kReduceMax))
      return fmt::format("{} has gaps", shape_text(*tensor));
  return "";
}

// A gradient of a maximum begins with a reduction of x: the largest element of each output, and how many equal it.
RowsWork ties(const ReduceDimBackward& a) {
  constexpr i64 kTiesBytes = 2 * sizeof(float);
  return {.x = a.x, .y = a.dy, .kind = a.kind, .state_bytes = kTiesBytes, .is_result = false};
}

// The launches "Most", "MostOfParts" where there are parts, and "Kernel", which writes dx.
KernelPlan plan_of_max(const ReduceDimBackward& a, const KernelTarget& target, const OpConfig& wanted) {
  const RowsWork work = ties(a);
  KernelPlan made = plan_over_rows(work, target, wanted);
  if (!made.why_not.empty()) return made;
  made.launches[0].name = "Most";
  if (made.launches.size() > 1) made.launches[1].name = "MostOfParts";
  made.workspace_bytes += i64(a.x.size[0]) * a.x.size[2] * work.state_bytes;
  const auto threads = i32(made.constants.at("threads"));
  const GradientCut cut = gradient_cut(a.x.size[0], a.x.size[1], a.x.size[2], threads);
  add_launch(made, "Kernel", cut.blocks * cut.slabs, threads);
  return made;
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& wanted) {
  const auto& a = as<ReduceDimBackward>(args);
  KernelPlan made{.why_not = why_not(a, target), .file = "sm80"};
  if (!made.why_not.empty()) return made;
  if (a.kind == kReduceMax) return plan_of_max(a, target, wanted);
  constexpr i32 kThreads = 256;
  const i64 words = ceil_div(i64(a.dx.size[0]) * a.dx.size[1] * a.dx.size[2], 8);
  const i64 each = wanted.values().empty() ? 4 : wanted.at("words"), grid = ceil_div(words, each * kThreads);
  made.constants = OpConfig{{"kind", a.kind}, {"threads", kThreads}, {"words", each}};
  add_launch(made, "Kernel", grid, kThreads);
  return made;
}

std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<ReduceDimBackward>(args);
  if (!target.kernels || !kernel(args, *target.kernels, {}).why_not.empty()) return {};
  if (a.kind == kReduceMax) return over_rows_configs(ties(a), *target.kernels);
  return {{{kKernelValue, 1}, {"words", 4}}, {{kKernelValue, 1}, {"words", 2}}};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ReduceDimBackward>("reduce_dim_backward", "dx = the gradient of reduce_dim");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.kernel = kernel;
    op.configs = configs;
    return op;
  }();
  return spec;
}

}  // namespace heddle::reduce_dim_backward
