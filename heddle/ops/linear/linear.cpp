#include "heddle/ops/linear/linear.h"

#include <algorithm>

#include "heddle/ir/row_classes.h"
#include "heddle/ir/rules.h"

namespace heddle::linear {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<Linear>(args);
  require_rank("linear", "x", a.x, 2);
  require_float("linear", "x", a.x);
  require_weight("linear", "w", a.w);
  require(a.x.last() == a.w.cols(), "[linear] x is {}, w is {}; the last sizes must be equal",
          shape_text(a.x), shape_text(a.w.data));
  set_output("linear", "y", a.y, a.x.dtype, {a.x.size[0], a.w.rows()});
}

// For many rows, a GPU tiles both dimensions so that x and the weight are read few times. It takes the widest tile of columns that
// still gives three quarters of an H200's 132 SMs a tile.
constexpr i32 kTileRows = 128, kEnoughTiles = 96;

i32 tile_cols(i32 rows, i32 rows_of_weight) {
  const auto tiles = [&](i32 cols) {
    return ((rows + kTileRows - 1) / kTileRows) * ((rows_of_weight + cols - 1) / cols);
  };
  return tiles(256) >= kEnoughTiles ? 256 : tiles(128) >= kEnoughTiles ? 128 : 64;
}

bool has_tiles(const Linear& a, const TilingTarget& target) {
  return target.gpu && a.x.size[0] > kManyStepRows;
}

// Columns of a tile that tensor cores multiply at once, and stages of its operands on chip. Each sum runs over K in order,
// whatever they are. Where a chip has no room for them, the body takes fewer stages, or narrower tiles. Other rows would
// change bits: the last rows of a step stream their weights if they are few.
std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<Linear>(args);
  if (!has_tiles(a, target)) return {};
  std::vector<OpConfig> all;
  for (const i64 stages : {4, 3})
    for (const i64 columns : {256, 128, 64}) all.push_back({{"columns", columns}, {"stages", stages}});
  const i64 preferred = tile_cols(a.x.size[0], a.w.rows());
  const auto first =
      std::ranges::find_if(all, [&](const OpConfig& c) { return c.at("columns") == preferred; });
  std::rotate(all.begin(), first, first + 1);
  return all;
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<Linear>(args);
  const bool many = has_tiles(a, target);
  const i32 columns = target.config ? i32(target.config->at("columns"))
                      : many        ? tile_cols(a.x.size[0], a.w.rows())
                                    : 512;
  return {{.dim = "M", .extent = a.x.size[0], .preferred = many ? kTileRows : 256},
          {.dim = "N", .extent = a.w.rows(), .unit = a.w.panel_rows, .preferred = columns, .anywhere = many}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<Linear>(args).w.cols();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Linear>(args);
  auto x = values.read(a.x), w = values.read(a.w);
  const size_t rows = size_t(a.x.size[0]), n = size_t(a.w.rows()), k = size_t(a.w.cols());
  std::vector<double> y(rows * n);
  for (size_t m = 0; m < rows; ++m)
    for (size_t c = 0; c < n; ++c) {
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += x[m * k + i] * w[c * k + i];
      y[m * n + c] = sum;
    }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Linear>("linear", "y = x w^T with a packed weight; takes a prologue and epilogues");
    op.infer = infer;
    op.axes = axes;
    op.configs = configs;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.chain_kernel = kernel;
    op.traits = {.main = true, .input = "x", .output = "y"};
    op.gradient = {{"matmul", {{"a", "dy"}, {"b", "w"}, {"y", "dx"}}},
                   {"matmul", {{"a", "dy^T"}, {"b", "x"}, {"y", "dw"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::linear
