#include "heddle/ops/bias/bias.h"

#include "heddle/ir/rules.h"

namespace heddle::bias {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Bias>(args);
  require_rank("bias", "x", a.x, 2);
  require_float("bias", "x", a.x);
  require_shape("bias", "bias", a.bias, {a.x.last()});
  require_float("bias", "bias", a.bias);
  set_output("bias", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Bias>(args);
  return {{.dim = "M", .extent = a.x.size[0], .preferred = 16}, {.dim = "N", .extent = a.x.last()}};
}

double flops(const std::byte*, const TileCoord& t) {
  return double(t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Bias>(args);
  auto y = values.read(a.x), bias = values.read(a.bias);
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Bias>("bias", "y = x + bias, the same bias for every row");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.epilogue = true, .input = "x", .output = "y", .in_place = true};
    op.gradient = {{"copy", {{"x", "dy"}, {"y", "dx"}}}, {"column_sum", {{"x", "dy"}, {"y", "dbias"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::bias
