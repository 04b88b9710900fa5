#include "heddle/ops/clamp/clamp.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::clamp {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Clamp>(args);
  require_rank("clamp", "x", a.x, 2);
  require_float("clamp", "x", a.x);
  require(a.low <= a.high, "[clamp] low = {}, high = {}; low must not be above high", a.low, a.high);
  set_output("clamp", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Clamp>(args);
  return matrix_axes(a.x.size[0], a.x.last(), 1);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Clamp>(args);
  auto y = values.read(a.x);
  for (double& v : y) v = v < double(a.low) ? double(a.low) : v > double(a.high) ? double(a.high) : v;
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Clamp>("clamp", "y = x, at least low and at most high");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<2>;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.epilogue = true, .input = "x", .output = "y", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::clamp
