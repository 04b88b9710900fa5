#include "heddle/ops/copy/copy.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::copy {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Copy>(args);
  require_rank("copy", "x", a.x, 2);
  require(is_wide_float(a.x.dtype) || a.x.dtype == DType::kI32,
          "[copy] x is {}; must be f32, f16, bf16 or i32", shape_text(a.x));
  set_output("copy", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Copy>(args);
  return {{.dim = "M", .extent = a.x.size[0], .preferred = 16}, {.dim = "N", .extent = a.x.last()}};
}

double flops(const std::byte*, const TileCoord&) {
  return 0;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Copy>(args);
  values.write(a.y, values.read(a.x));
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Copy>(args);
  return {.matrices = {&a.x, &a.y}, .maps = true, .adds_up = false};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Copy>("copy", "y = x in the element type of y");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "x", .output = "y"};
    op.gradient = {{"copy", {{"x", "dy"}, {"y", "dx"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::copy
