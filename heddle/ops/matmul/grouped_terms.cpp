#include "heddle/ops/matmul/grouped_terms.h"

#include <algorithm>

#include "heddle/ir/mark_matrices.h"
#include "heddle/ir/product.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/matmul/grouped_product.h"

namespace heddle::grouped_terms {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GroupedTerms>(args);
  require_rank("grouped_terms", "a", a.a.data, 2);
  require_rank("grouped_terms", "b", a.b.data, 2);
  require_float("grouped_terms", "a", a.a.data);
  require_float("grouped_terms", "b", a.b.data);
  require_rank("grouped_terms", "ends", a.ends, 1);
  require_dtype("grouped_terms", "ends", a.ends, DType::kI32);
  require(a.a.cols() == a.b.rows(),
          "[grouped_terms] a is {} x {}, b is {} x {}; a must have a column for each row of b", a.a.rows(),
          a.a.cols(), a.b.rows(), a.b.cols());
  require_unit("grouped_terms", a.unit);
  set_output("grouped_terms", "y", a.y, product_dtype(a.a.matrix(), a.b.matrix()),
             {a.ends.size[0], a.a.rows(), a.b.cols()});
}

ProductCall product_of(const GroupedTerms& a) {
  return {.op = "grouped_terms",
          .a = a.a,
          .b = a.b,
          .y = a.y,
          .at = {offsetof(GroupedTerms, a.data), offsetof(GroupedTerms, b.data), offsetof(GroupedTerms, y)},
          .batches = a.ends.size[0],
          .rows = a.a.rows(),
          .columns = a.b.cols(),
          .terms = std::max(1, a.a.cols() / a.ends.size[0]),  // a group has so many on average
          .is_grouped = true,
          .why_not = why_not_grouped(a.unit)};
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  return product_kernel(product_of(as<GroupedTerms>(args)), target, config);
}

std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  return grouped_configs(product_of(as<GroupedTerms>(args)), target);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<GroupedTerms>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.batches() * GroupedTermsTile::in_batch(a)},
          {.dim = "N", .extent = a.b.cols(), .preferred = grouped_columns(target)}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<GroupedTerms>(args);
  const GroupedTermsTile tile(a, t[0]);
  out.push_back(whole(a.a.data, Access::kRead, true));
  out.push_back(whole(a.b.data, Access::kRead, true));
  out.push_back(whole(a.ends, Access::kRead));
  out.push_back(
      part_of(a.y, Access::kWrite, {{tile.batch, tile.batch + 1}, {tile.begin, tile.end}, {t[1], t[2]}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<GroupedTerms>(args);
  const GroupedTermsTile tile(a, t[0]);
  return 2.0 * (tile.end - tile.begin) * (t[2] - t[1]) * a.terms() / a.batches();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const GroupedTermsTile tile(as<GroupedTerms>(args), t[0]);
  return product_scratch(tile.end - tile.begin, t[2] - t[1]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GroupedTerms>(args);
  const auto left = values.read(a.a.data), right = values.read(a.b.data), ends = values.read(a.ends);
  const auto rows = size_t(a.rows()), columns = size_t(a.columns()), terms = size_t(a.terms());
  std::vector<double> y(ends.size() * rows * columns);
  for (size_t k = 0, group = 0; k < terms; ++k) {
    while (group < ends.size() && ends[group] <= double(k)) ++group;
    if (group == ends.size()) break;
    for (size_t m = 0; m < rows; ++m)
      for (size_t n = 0; n < columns; ++n)
        y[(group * rows + m) * columns + n] += left[a.a.transposed ? k * rows + m : m * terms + k] *
                                               right[a.b.transposed ? n * terms + k : k * columns + n];
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GroupedTerms>("grouped_terms", "y[i] = a b, over the terms of group i");
    op.infer = infer;
    op.configs = configs;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    mark_matrices(op, {"a", "b"});
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::grouped_terms
