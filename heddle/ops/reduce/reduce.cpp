#include "heddle/ops/reduce/reduce.h"

#include <cmath>
#include <numeric>

#include "heddle/ir/rules.h"
#include "heddle/ir/values.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::reduce {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Reduce>(args);
  require_rank("reduce", "x", a.x, 2);
  require_float("reduce", "x", a.x);
  require(a.kind >= 0 && a.kind < kNumReduceKinds, "[reduce] kind = {}; must be 0 to {}", a.kind,
          kNumReduceKinds - 1);
  require(a.variant >= 0 && a.variant < kNumReduceVariants, "[reduce] variant = {}; must be 0 to {}",
          a.variant, kNumReduceVariants - 1);
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
    y.push_back(a.kind == kReduceMax    ? std::accumulate(row, row + a.x.last(), -INFINITY, max_or_nan)
                : a.kind == kReduceMean ? sum / a.x.last()
                                        : sum);
  }
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Reduce>(args);
  return {.form = RowForm::kRows,
          .matrices = {&a.x},
          .vectors = {&a.y},
          .kind = a.kind,
          .has_long = true,
          .takes_loose = true,
          .takes_fours = true};
}

KernelPlan lesson(const Reduce& a, const KernelTarget& target) {
  constexpr i32 kFirstArch = 80, kThreads = 256;
  KernelPlan made{.file = "sm80", .constants = OpConfig{{"kind", a.kind}, {"threads", kThreads}}};
  if (target.arch < kFirstArch) made.why_not = "it is written for compute capability 8.0 and later";
  if (!is_wide_float(a.x.dtype) || !is_wide_float(a.y.dtype))
    made.why_not = fmt::format("{} or {} has elements that are no floats", shape_text(a.x), shape_text(a.y));
  const bool is_naive = a.variant == kReduceNaive;
  const i32 rows = a.x.size[0];
  made.launches = {{.name = is_naive ? "NaiveKernel" : "ImprovedKernel",
                    .grid = u32(is_naive ? (rows + kThreads - 1) / kThreads : rows),
                    .threads = kThreads}};
  return made;
}

// Lets the attribute choose another kernel than that of rows.
void add_lessons(OpSpec& op) {
  op.kernel = [fast = op.kernel](const std::byte* args, const KernelTarget& target, const OpConfig& config) {
    const auto& a = as<Reduce>(args);
    return a.variant == kReduceShuffle ? fast(args, target, config) : lesson(a, target);
  };
  op.configs = [fast = op.configs](const std::byte* args, const TilingTarget& target) {
    return as<Reduce>(args).variant == kReduceShuffle ? fast(args, target) : std::vector<OpConfig>();
  };
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Reduce>("reduce", "y = sum, maximum or mean of each row of x");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<Reduce, 1>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    add_lessons(op);
    op.traits = {.input = "x", .output = "y", .wants_f32 = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::reduce
