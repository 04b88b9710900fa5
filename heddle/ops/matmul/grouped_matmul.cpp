#include "heddle/ops/matmul/grouped_matmul.h"

#include "heddle/ir/mark_matrices.h"
#include "heddle/ir/product.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/matmul/grouped_product.h"

namespace heddle::grouped_matmul {

std::vector<Case> cases();

namespace {

constexpr i32 kTileRows = 128;

void infer(std::byte* args) {
  auto& a = as<GroupedMatmul>(args);
  require_rank("grouped_matmul", "a", a.a.data, 2);
  require_float("grouped_matmul", "a", a.a.data);
  require_rank("grouped_matmul", "b", a.b.data, 3);
  require_float("grouped_matmul", "b", a.b.data);
  require_shape("grouped_matmul", "ends", a.ends, {a.b.data.size[0]});
  require_dtype("grouped_matmul", "ends", a.ends, DType::kI32);
  require(a.a.cols() == a.b.rows(),
          "[grouped_matmul] a is {} x {}, b has matrices of {} x {}; a must have a column for each row of b",
          a.a.rows(), a.a.cols(), a.b.rows(), a.b.cols());
  require_unit("grouped_matmul", a.unit);
  set_output("grouped_matmul", "y", a.y, product_dtype(a.a.matrix(), a.b.at(0)), {a.a.rows(), a.b.cols()});
}

ProductCall product_of(const GroupedMatmul& a) {
  return {
      .op = "grouped_matmul",
      .a = a.a,
      .b = a.b,
      .y = a.y,
      .at = {offsetof(GroupedMatmul, a.data), offsetof(GroupedMatmul, b.data), offsetof(GroupedMatmul, y)},
      .batches = 1,
      .rows = a.a.rows(),
      .columns = a.b.cols(),
      .terms = a.a.cols(),
      .is_grouped = true,
      .why_not = why_not_grouped(a.unit)};
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  return product_kernel(product_of(as<GroupedMatmul>(args)), target, config);
}

std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  return grouped_configs(product_of(as<GroupedMatmul>(args)), target);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<GroupedMatmul>(args);
  return {{.dim = "M", .extent = a.a.rows(), .preferred = kTileRows},
          {.dim = "N", .extent = a.b.cols(), .preferred = grouped_columns(target)}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<GroupedMatmul>(args);
  const std::array<i32, 2> rows = {t[0], t[1]}, all = {0, a.a.cols()};
  out.push_back(a.a.transposed ? part_of(a.a.data, Access::kRead, {all, rows})
                               : part_of(a.a.data, Access::kRead, {rows, all}));
  out.push_back(whole(a.b.data, Access::kRead, true));
  out.push_back(whole(a.ends, Access::kRead));
  out.push_back(part_of(a.y, Access::kWrite, {rows, {t[2], t[3]}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<GroupedMatmul>(args).a.cols();
}

i64 scratch(const std::byte*, const TileCoord& t) {
  return product_scratch(t[1] - t[0], t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GroupedMatmul>(args);
  const auto left = values.read(a.a.data), right = values.read(a.b.data), ends = values.read(a.ends);
  const auto rows = size_t(a.rows()), columns = size_t(a.columns()), terms = size_t(a.terms());
  std::vector<double> y(rows * columns);
  for (size_t m = 0, group = 0; m < rows; ++m) {
    while (group < ends.size() && ends[group] <= double(m)) ++group;
    if (group == ends.size()) break;
    const double* matrix = right.data() + group * columns * terms;
    for (size_t n = 0; n < columns; ++n)
      for (size_t k = 0; k < terms; ++k)
        y[m * columns + n] += left[a.a.transposed ? k * rows + m : m * terms + k] *
                              matrix[a.b.transposed ? n * terms + k : k * columns + n];
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GroupedMatmul>("grouped_matmul", "y[m] = a[m] b[i], where row m lies in group i");
    mark_matrices(op, {"a", "b"});
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

}  // namespace heddle::grouped_matmul
