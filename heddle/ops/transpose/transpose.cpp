#include "heddle/ops/transpose/transpose.h"

#include <fmt/format.h>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::transpose {

std::vector<Case> cases();

namespace {

constexpr i32 kMostTile = 1024, kUsualTile = 64;

void infer(std::byte* args) {
  auto& a = as<Transpose>(args);
  require_rank("transpose", "x", a.x, 2);
  require(is_wide_float(a.x.dtype) || a.x.dtype == DType::kI32,
          "[transpose] x is {}; must be f32, f16, bf16 or i32", shape_text(a.x));
  require(a.tile_size >= 0 && a.tile_size <= kMostTile,
          "[transpose] tile_size is {}; must be 0 (heddle chooses) to {}", a.tile_size, kMostTile);
  set_output("transpose", "y", a.y, a.x.dtype, {a.x.last(), a.x.size[0]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Transpose>(args);
  const i32 side = a.tile_size > 0 ? a.tile_size : kUsualTile;
  return {{.dim = "M", .extent = a.x.size[0], .preferred = side},
          {.dim = "N", .extent = a.x.last(), .preferred = side}};
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Transpose>(args);
  auto x = values.read(a.x), y = x;
  const size_t rows = size_t(a.x.size[0]), columns = size_t(a.x.last());
  for (size_t m = 0; m < rows; ++m)
    for (size_t n = 0; n < columns; ++n) y[n * rows + m] = x[m * columns + n];
  values.write(a.y, y);
}

// True where rows of 16-bit elements are whole words of 16 bytes.
bool has_words(const Tensor& rows) {
  return size_of(rows.dtype) == 2 && rows.last() % 8 == 0 && rows.stride[0] % 8 == 0;
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Transpose>(args);
  const bool words = is_wide_float(a.x.dtype) && has_words(a.x) && has_words(a.y);
  RowWork work{
      .form = words ? RowForm::kTiles : RowForm::kElementTiles, .matrices = {&a.x, &a.y}, .adds_up = false};
  if (a.y.dtype != a.x.dtype)
    work.misfit = fmt::format("x is {} and y {}; must be of one dtype", name(a.x.dtype), name(a.y.dtype));
  if (a.tile_size > 0) work.misfit = "tile_size is given, and its tiles have a size of their own";
  return work;
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Transpose>("transpose", "y[n, m] = x[m, n]");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<0>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "x", .output = "y"};
    op.gradient = {{"transpose", {{"x", "dy"}, {"y", "dx"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::transpose
