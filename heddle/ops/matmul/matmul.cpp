#include "heddle/ops/matmul/matmul.h"

#include "heddle/ir/product.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/matmul/product_kernel.h"

namespace heddle::matmul {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Matmul>(args);
  require_matrix("matmul", "a", a.a);
  require_matrix("matmul", "b", a.b);
  require(a.a.cols() == a.b.rows(),
          "[matmul] a is {} x {}, b is {} x {}; a must have a column for each row of b", a.a.rows(),
          a.a.cols(), a.b.rows(), a.b.cols());
  set_output("matmul", "y", a.y, product_dtype(a.a, a.b), {a.a.rows(), a.b.cols()});
}

// Tensor cores want large tiles; a small product wants enough of them.
constexpr i32 kLargeTile = 128, kSmallTile = 64, kEnoughTiles = 96;  // three quarters of an H100's SMs

i32 default_tile(const Matmul& a, const TilingTarget& target) {
  const auto count = [](i32 size) { return (size + kLargeTile - 1) / kLargeTile; };
  const bool large = target.gpu && i64(count(a.a.rows())) * count(a.b.cols()) >= kEnoughTiles;
  return large ? kLargeTile : kSmallTile;
}

ProductCall product_of(const Matmul& a) {
  ProductCall call{.op = "matmul",
                   .a = {.data = a.a.data, .transposed = a.a.transposed},
                   .b = {.data = a.b.data, .transposed = a.b.transposed},
                   .y = a.y,
                   .at = {offsetof(Matmul, a.data), offsetof(Matmul, b.data), offsetof(Matmul, y)},
                   .batches = 1,
                   .rows = a.a.rows(),
                   .columns = a.b.cols(),
                   .terms = a.a.cols()};
  call.is_tf32 = a.allow_tf32 && a.a.data.dtype == DType::kF32 && a.b.data.dtype == DType::kF32;
  for (const auto& [name, matrix] : {std::pair{"a", &a.a}, std::pair{"b", &a.b}})
    if (matrix->scales.exists() || matrix->zeros.exists()) call.why_not = fmt::format("{} has scales", name);
  return call;
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  return product_kernel(product_of(as<Matmul>(args)), target, config);
}

// Sizes of a tile. A sum has the same order in each. A whole kernel has an order of its own.
std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<Matmul>(args);
  const i64 first = default_tile(a, target), second = kSmallTile + kLargeTile - first;
  const std::vector<OpConfig> tiles = {{{"rows", first}, {"columns", first}},
                                       {{"rows", second}, {"columns", second}}};
  std::vector<OpConfig> all;
  if (target.kernels) all = product_kernel_configs(product_of(a), *target.kernels);
  const bool differs = !all.empty();
  for (const OpConfig& config : tiles) all.push_back(differs ? config.reordering() : config);
  return all;
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<Matmul>(args);
  const auto size = [&](const char* name) {
    return target.config ? i32(target.config->at(name)) : default_tile(a, target);
  };
  // A pair of i4 belongs to one tile.
  return {{.dim = "M", .extent = a.a.rows(), .unit = 2, .preferred = size("rows")},
          {.dim = "N", .extent = a.b.cols(), .unit = 2, .preferred = size("columns")}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<Matmul>(args).a.cols();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Matmul>(args);
  const auto left = read_matrix(values, a.a), right = read_matrix(values, a.b);
  const size_t k = size_t(a.a.cols()), n = size_t(a.b.cols());
  std::vector<double> y(size_t(a.a.rows()) * n);
  for (size_t i = 0; i < left.size(); ++i)
    for (size_t c = 0; c < n; ++c) y[i / k * n + c] += left[i] * right[i % k * n + c];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<Matmul>("matmul", "y = a b, of matrices in rows or in columns, floats or codes with scales");
    op.infer = infer;
    op.configs = configs;
    op.kernel = kernel;
    op.axes = axes;
    op.flops = flops;
    op.scratch = [](const std::byte*, const TileCoord& t) {
      return product_scratch(t[1] - t[0], t[3] - t[2]);
    };
    op.reference = reference;
    op.cases = cases;
    op.gradient = {{"matmul", {{"a", "dy"}, {"b", "b^T"}, {"y", "da"}}},
                   {"matmul", {{"a", "a^T"}, {"b", "dy"}, {"y", "db"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::matmul
