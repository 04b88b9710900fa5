#include "heddle/ops/scale/scale.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::scale {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Scale>(args);
  require_rank("scale", "x", a.x, 2);
  require_float("scale", "x", a.x);
  require(std::isfinite(a.factor), "[scale] factor = {}; must be finite", a.factor);
  set_output("scale", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Scale>(args);
  return matrix_axes(a.x.size[0], a.x.last(), 1);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Scale>(args);
  auto y = values.read(a.x);
  for (double& v : y) v *= double(a.factor);
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Scale>("scale", "y = factor * x");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<1>;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.epilogue = true, .input = "x", .output = "y", .in_place = true};
    op.gradient = {{"scale", {{"x", "dy"}, {"y", "dx"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::scale
