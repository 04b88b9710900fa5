#include "heddle/ops/matmul/scaled_mm.h"

#include "heddle/ir/mark_matrices.h"
#include "heddle/ir/product.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/matmul/warp_kernel.h"

namespace heddle::scaled_mm {

std::vector<Case> cases();

namespace {

i32 blocks_of(i32 size) {
  return (size - 1) / kScaleBlock + 1;
}

// Requires that a dimension of scales has one of these sizes.
void require_scale(const char* name, Matrices& scales, const ScaledMm& a,
                   const std::vector<std::array<i32, 2>>& sizes) {
  if (scales.data.rank == 1 && scales.data.size[0] == 1)  // the only one
    scales.data.rank = 2, scales.data.size[1] = 1, scales.data.stride[0] = scales.data.stride[1] = 1;
  require_rank("scaled_mm", name, scales.data, 2);
  require_dtype("scaled_mm", name, scales.data, DType::kF32);
  std::string all;
  for (const auto& [rows, columns] : sizes) {
    if (scales.rows() == rows && scales.cols() == columns) return;
    all += fmt::format("{}[{}, {}]", all.empty() ? "" : " or ", rows, columns);
  }
  fail(ErrorCode::kInvalidArgument, "[scaled_mm] {} is [{}, {}], a is {} x {}, b is {} x {}; must be {}",
       name, scales.rows(), scales.cols(), a.a.rows(), a.a.cols(), a.b.rows(), a.b.cols(), all);
}

void infer(std::byte* args) {
  auto& a = as<ScaledMm>(args);
  require_rank("scaled_mm", "a", a.a.data, 2);
  require_rank("scaled_mm", "b", a.b.data, 2);
  require(a.a.cols() == a.b.rows(),
          "[scaled_mm] a is {} x {}, b is {} x {}; a must have a column for each row of b", a.a.rows(),
          a.a.cols(), a.b.rows(), a.b.cols());
  const i32 m = a.a.rows(), n = a.b.cols(), blocks = blocks_of(a.a.cols());
  require_scale("scale_a", a.scale_a, a, {{1, 1}, {m, 1}, {m, blocks}});
  require_scale("scale_b", a.scale_b, a, {{1, 1}, {1, n}, {blocks, n}, {blocks, blocks_of(n)}});
  set_output("scaled_mm", "y", a.y, DType::kBf16, {m, n});
}

constexpr i32 kTile = 64;

ProductCall product_of(const ScaledMm& a) {
  const i32 n = a.b.cols(), k = a.a.cols();
  const bool is_blocked = a.groups() > 1, has_columns = a.scale_b.cols() == n && n > 1;
  ProductCall call{.op = "scaled_mm",
                   .a = a.a,
                   .b = a.b,
                   .y = a.y,
                   .at = {offsetof(ScaledMm, a.data), offsetof(ScaledMm, b.data), offsetof(ScaledMm, y)},
                   .batches = 1,
                   .rows = a.a.rows(),
                   .columns = n,
                   .terms = k,
                   .is_fp8 = true,
                   .promotes = is_blocked || !a.fast_sums,
                   .scales = !is_blocked   ? 1
                             : has_columns ? 3
                                           : 2};
  if (is_blocked && has_columns)
    call.why_not = "b has scales of single columns for each 128 k; must have one for 128 columns";
  else if (!is_blocked && a.scale_b.cols() != 1 && a.scale_b.cols() != n)
    call.why_not = fmt::format("b has scales of 128 columns, and {} k; must have more than 128 k", k);
  return call;
}

// The kernel with wgmma where it takes the call, else that of mma.sync.
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  const ProductCall call = product_of(as<ScaledMm>(args));
  if (!is_of_warp_kernel(config)) {
    KernelPlan plan = product_kernel(call, target, config);
    if (plan.why_not.empty() || !config.values().empty()) return plan;
  }
  return warp_kernel(call, target, config);
}

// Lists both kernels' own, which order sums differently. The body has one size of tiles.
std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  if (!target.kernels) return {};
  const ProductCall call = product_of(as<ScaledMm>(args));
  std::vector<OpConfig> all = product_kernel_configs(call, *target.kernels);
  const bool has_wgmma = !all.empty();
  for (const OpConfig& config : warp_kernel_configs(call, *target.kernels))
    all.push_back(has_wgmma ? config.reordering() : config);
  return all;
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<ScaledMm>(args);
  return {{.dim = "M", .extent = a.a.rows(), .preferred = kTile},
          {.dim = "N", .extent = a.b.cols(), .preferred = kTile}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<ScaledMm>(args);
  const auto add = [&](const Matrices& of, std::array<i32, 2> rows, std::array<i32, 2> columns) {
    if (of.transposed) std::swap(rows, columns);
    out.push_back(part_of(of.data, Access::kRead, {rows, columns}));
  };
  const std::array<i32, 2> rows = {t[0], t[1]}, columns = {t[2], t[3]}, terms = {0, a.terms()};
  add(a.a, rows, terms);
  add(a.b, terms, columns);
  add(a.scale_a, a.scale_a.rows() == 1 ? std::array{0, 1} : rows, {0, a.scale_a.cols()});
  const i32 scales = a.scale_b.cols();
  add(a.scale_b, {0, a.scale_b.rows()},
      scales == a.columns() ? columns
      : scales == 1         ? std::array{0, 1}
                            : std::array{t[2] / kScaleBlock, (t[3] - 1) / kScaleBlock + 1});
  out.push_back(part_of(a.y, Access::kWrite, {rows, columns}));
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<ScaledMm>(args).terms();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const i32 rows = t[1] - t[0], columns = t[3] - t[2];
  return product_scratch(rows, columns) + fragment_bytes(rows, columns) +
         (as<ScaledMm>(args).groups() > 1 ? i64(4) * rows * columns : 0);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ScaledMm>(args);
  const auto read = [&](const Matrices& of) { return read_matrix(values, of.matrix()); };
  const auto left = read(a.a), right = read(a.b), by_a = read(a.scale_a), by_b = read(a.scale_b);
  const size_t n = size_t(a.columns()), k = size_t(a.terms()), block = size_t(kScaleBlock);
  const size_t of_b = size_t(a.scale_b.cols()), of_a = size_t(a.scale_a.cols());
  std::vector<double> y(size_t(a.rows()) * n);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t row = i / n, column = i % n;
    double sum = 0;  // over terms that have the same scales
    for (size_t t = 0; t < k; ++t) {
      const size_t at_a = (a.scale_a.rows() == 1 ? 0 : row) * of_a + (of_a == 1 ? 0 : t / block);
      const size_t at_b = (a.scale_b.rows() == 1 ? 0 : t / block) * of_b + (of_b == n   ? column
                                                                            : of_b == 1 ? 0
                                                                                        : column / block);
      sum += left[row * k + t] * right[t * n + column];
      const bool is_last = t + 1 == k || ((of_a > 1 || a.scale_b.rows() > 1) && (t + 1) % block == 0);
      if (is_last) y[i] += sum * by_a[at_a] * by_b[at_b], sum = 0;
    }
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ScaledMm>(
        "scaled_mm",
        "y = (scale_a * a) (scale_b * b) of fp8, with scales of all, of rows and columns, or of blocks");
    mark_matrices(op, {"a", "b", "scale_a", "scale_b"});
    op.infer = infer;
    op.configs = configs;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::scaled_mm
