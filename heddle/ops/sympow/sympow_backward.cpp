#include "heddle/ops/sympow/sympow_backward.h"

#include "heddle/ops/sympow/sympow_reference.h"

namespace heddle::sympow_backward {

std::vector<Case> cases();

namespace {

constexpr i32 kRows = 64;

void infer(std::byte* args) {
  auto& a = as<SympowBackward>(args);
  require_rank("sympow_backward", "x", a.x, 2);
  require_float("sympow_backward", "x", a.x);
  const i32 width = require_power("sympow_backward", "x", a.power, a.x.last());
  require_shape("sympow_backward", "dy", a.dy, {a.x.size[0], width});
  require_float("sympow_backward", "dy", a.dy);
  set_output("sympow_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<SympowBackward>(args).x.size[0], kRows);
}

double flops(const std::byte* args, const TileCoord& t) {
  return 4.0 * (t[1] - t[0]) * as<SympowBackward>(args).dy.last();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  return i64(8) * (t[1] - t[0]) * as<SympowBackward>(args).x.last();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<SympowBackward>(args);
  const auto x = values.read(a.x), dy = values.read(a.dy);
  const auto row_of = [](const std::vector<double>& all, i32 row, i32 columns) {
    return std::span(all).subspan(size_t(row) * size_t(columns), size_t(columns));
  };
  std::vector<double> dx;
  for (i32 row = 0; row < a.x.size[0]; ++row) {
    const auto made = sympow_gradient(a.power, row_of(x, row, a.x.last()), row_of(dy, row, a.dy.last()));
    dx.insert(dx.end(), made.begin(), made.end());
  }
  values.write(a.dx, dx);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<SympowBackward>("sympow_backward", "dx = J' dy, J the Jacobian of the symmetric power at x");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::sympow_backward
