#include "heddle/ops/reduce/reduce_dim_backward.h"

#include <algorithm>

#include "heddle/ir/rules.h"

namespace heddle {

std::vector<Case> reduce_dim_backward_cases();

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
    for (size_t i = first; i < end; i += columns) most = std::max(most, x[i]);
    for (size_t i = first; i < end; i += columns) count += a.kind == kReduceMax && x[i] == most ? 1 : 0;
    for (size_t i = first; i < end; i += columns)
      dx[i] = a.kind == kReduceMax    ? (x[i] == most ? dy[out] / count : 0)
              : a.kind == kReduceMean ? dy[out] / double(rows)
                                      : dy[out];
  }
  values.write(a.dx, dx);
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& wanted) {
  const auto& a = as<ReduceDimBackward>(args);
  KernelPlan made{.file = "sm80"};
  constexpr i32 kFirstArch = 80, kThreads = 256;
  const i64 line = i64(a.dx.size[1]) * a.dx.size[2], words = (a.dx.size[0] * line + 7) / 8;
  const bool is_dense =
      (a.dx.size[1] == 1 || a.dx.stride[1] == a.dx.size[2]) && (a.dx.size[0] == 1 || a.dx.stride[0] == line);
  const i64 each = wanted.values().empty() ? 4 : wanted.at("words");
  const i64 grid = (words + each * kThreads - 1) / (each * kThreads);
  constexpr i64 kMostCtas = 0x7fffffff;
  if (target.arch < kFirstArch)
    made.why_not = "it is written for compute capability 8.0 and later";
  else if (a.kind == kReduceMax)
    made.why_not = "the gradient of a maximum reads x twice, tile by tile";
  else if (!is_dense)
    made.why_not = fmt::format("{} has gaps", shape_text(a.dx));
  else if (!is_wide_float(a.dy.dtype) || !is_wide_float(a.dx.dtype))
    made.why_not =
        fmt::format("{} or {} has elements that are no floats", shape_text(a.dy), shape_text(a.dx));
  else if (grid > kMostCtas)
    made.why_not = fmt::format("it would have {} CTAs; a launch takes {}", grid, kMostCtas);
  made.constants = OpConfig{{"kind", a.kind}, {"threads", kThreads}, {"words", each}};
  made.launches = {{.grid = u32(grid), .threads = kThreads}};
  return made;
}

std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  if (!target.kernels || !kernel(args, *target.kernels, {}).why_not.empty()) return {};
  return {{{kKernelValue, 1}, {"words", 4}}, {{kKernelValue, 1}, {"words", 2}}};
}

}  // namespace

const OpSpec& reduce_dim_backward_op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ReduceDimBackward>("reduce_dim_backward", "dx = the gradient of reduce_dim");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = reduce_dim_backward_cases;
    op.kernel = kernel;
    op.configs = configs;
    return op;
  }();
  return spec;
}

}  // namespace heddle
