#include "heddle/ops/activation/activation.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/activation/activation_reference.h"

namespace heddle::activation {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Activation>(args);
  require_rank("activation", "x", a.x, 2);
  require_float("activation", "x", a.x);
  require(a.kind >= 0 && a.kind < kNumActivations, "[activation] kind = {}; must be 0 to {}", a.kind,
          kNumActivations - 1);
  set_output("activation", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Activation>(args);
  return {{.dim = "M", .extent = a.x.size[0], .preferred = 16}, {.dim = "N", .extent = a.x.last()}};
}

double flops(const std::byte*, const TileCoord& t) {
  return 20.0 * (t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Activation>(args);
  auto y = values.read(a.x);
  for (double& v : y) v = activation_reference(a.kind, v);
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Activation>("activation", "y = f(x): SiLU, GELU (exact, tanh) or ReLU");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.epilogue = true, .input = "x", .output = "y", .in_place = true};
    op.gradient = {{"activation_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::activation
