#include "heddle/ops/transpose/transpose.h"

#include "heddle/ir/row_kernel.h"
#include "heddle/ir/rules.h"

namespace heddle {

std::vector<Case> transpose_cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Transpose>(args);
  require_rank("transpose", "x", a.x, 2);
  require(is_wide_float(a.x.dtype) || a.x.dtype == DType::kI32,
          "[transpose] x is {}; must be f32, f16, bf16 or i32", shape_text(a.x));
  set_output("transpose", "y", a.y, a.x.dtype, {a.x.last(), a.x.size[0]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Transpose>(args);
  return {{.dim = "M", .extent = a.x.size[0], .preferred = 64},
          {.dim = "N", .extent = a.x.last(), .preferred = 64}};
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Transpose>(args);
  auto x = values.read(a.x), y = x;
  const size_t rows = size_t(a.x.size[0]), columns = size_t(a.x.last());
  for (size_t m = 0; m < rows; ++m)
    for (size_t n = 0; n < columns; ++n) y[n * rows + m] = x[m * columns + n];
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Transpose>(args);
  return {.form = RowForm::kTiles, .matrices = {&a.x, &a.y}, .adds_up = false};
}

}  // namespace

const OpSpec& transpose_op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Transpose>("transpose", "y[n, m] = x[m, n]");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<0>;
    op.reference = reference;
    op.cases = transpose_cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "x", .output = "y"};
    op.gradient = {{"transpose", {{"x", "dy"}, {"y", "dx"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle
