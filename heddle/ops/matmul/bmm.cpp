#include "heddle/ops/matmul/bmm.h"

#include "heddle/base/invariant.h"
#include "heddle/ir/mark_matrices.h"
#include "heddle/ir/product.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/matmul/product_kernel.h"

namespace heddle::bmm {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Bmm>(args);
  require_rank("bmm", "a", a.a.data, 3);
  require_rank("bmm", "b", a.b.data, 3);
  require_float("bmm", "a", a.a.data);
  require_float("bmm", "b", a.b.data);
  const i32 batches = a.a.data.size[0];
  require(
      a.b.data.size[0] == batches && a.a.cols() == a.b.rows(),
      "[bmm] a is {} of {} x {}, b is {} of {} x {}; must be as many, and a must have a column for each row "
      "of b",
      batches, a.a.rows(), a.a.cols(), a.b.data.size[0], a.b.rows(), a.b.cols());
  set_output("bmm", "y", a.y, product_dtype(a.a.at(0), a.b.at(0)), {batches, a.a.rows(), a.b.cols()});
}

constexpr i32 kLargeTile = 128, kSmallTile = 64, kEnoughTiles = 96;  // three quarters of an H100's SMs

i32 default_columns(const Bmm& a, const TilingTarget& target) {
  const i64 rows = i64(a.a.data.size[0]) * ((a.a.rows() - 1) / BmmTile::kRows + 1);
  return target.gpu && rows * ((a.b.cols() - 1) / kLargeTile + 1) >= kEnoughTiles ? kLargeTile : kSmallTile;
}

ProductCall product_of(const Bmm& a) {
  return {.op = "bmm",
          .a = a.a,
          .b = a.b,
          .y = a.y,
          .at = {offsetof(Bmm, a.data), offsetof(Bmm, b.data), offsetof(Bmm, y)},
          .batches = a.a.data.size[0],
          .rows = a.a.rows(),
          .columns = a.b.cols(),
          .terms = a.a.cols()};
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  return product_kernel(product_of(as<Bmm>(args)), target, config);
}

std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<Bmm>(args);
  const i64 first = default_columns(a, target), second = kSmallTile + kLargeTile - first;
  std::vector<OpConfig> all;
  if (target.kernels) all = product_kernel_configs(product_of(a), *target.kernels);
  const bool differs = !all.empty();
  for (const i64 columns : {first, second}) {
    const OpConfig config{{"columns", columns}};
    all.push_back(differs ? config.reordering() : config);
  }
  return all;
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<Bmm>(args);
  const i32 columns = target.config ? i32(target.config->at("columns")) : default_columns(a, target);
  return {
      {.kind = TileAxis::Kind::kIndex, .extent = a.a.data.size[0] * ((a.a.rows() - 1) / BmmTile::kRows + 1)},
      {.dim = "N", .extent = a.b.cols(), .preferred = columns}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<Bmm>(args);
  const BmmTile tile(a, t[0]);
  const auto add = [&](const Tensor& tensor, Access access, bool turned, std::array<i32, 2> rows,
                       std::array<i32, 2> columns) {
    if (turned) std::swap(rows, columns);
    out.push_back(part_of(tensor, access, {{tile.batch, tile.batch + 1}, rows, columns}));
  };
  const std::array<i32, 2> rows = {tile.begin, tile.end}, columns = {t[1], t[2]}, all = {0, a.terms()};
  add(a.a.data, Access::kRead, a.a.transposed, rows, all);
  add(a.b.data, Access::kRead, a.b.transposed, all, columns);
  add(a.y, Access::kWrite, false, rows, columns);
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<Bmm>(args);
  const BmmTile tile(a, t[0]);
  return 2.0 * (tile.end - tile.begin) * (t[2] - t[1]) * a.terms();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const BmmTile tile(as<Bmm>(args), t[0]);
  return product_scratch(tile.end - tile.begin, t[2] - t[1]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Bmm>(args);
  const auto left = values.read(a.a.data), right = values.read(a.b.data);
  const size_t rows = size_t(a.rows()), columns = size_t(a.columns()), terms = size_t(a.terms());
  std::vector<double> y(size_t(a.batches()) * rows * columns);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t n = i % columns, m = i / columns % rows, batch = i / columns / rows;
    for (size_t k = 0; k < terms; ++k)
      y[i] += left[batch * rows * terms + (a.a.transposed ? k * rows + m : m * terms + k)] *
              right[batch * columns * terms + (a.b.transposed ? n * terms + k : k * columns + n)];
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Bmm>("bmm", "y[i] = a[i] b[i], of matrices of floats in rows or in columns");
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
    op.gradient = {{"bmm", {{"a", "dy"}, {"b", "b^T"}, {"y", "da"}}},
                   {"bmm", {{"a", "a^T"}, {"b", "dy"}, {"y", "db"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::bmm
