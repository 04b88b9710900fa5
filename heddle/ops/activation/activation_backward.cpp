#include "heddle/ops/activation/activation_backward.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/activation/activation_reference.h"

namespace heddle::activation_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ActivationBackward>(args);
  require_rank("activation_backward", "x", a.x, 2);
  require_float("activation_backward", "x", a.x);
  require_shape("activation_backward", "dy", a.dy, {a.x.size[0], a.x.last()});
  require_float("activation_backward", "dy", a.dy);
  require(a.kind >= 0 && a.kind < kNumActivations, "[activation_backward] kind = {}; must be 0 to {}", a.kind,
          kNumActivations - 1);
  set_output("activation_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<ActivationBackward>(args);
  return matrix_axes(a.x.size[0], a.x.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ActivationBackward>(args);
  const auto x = values.read(a.x);
  auto dx = values.read(a.dy);
  for (size_t i = 0; i < dx.size(); ++i) dx[i] *= activation_slope_reference(a.kind, x[i]);
  values.write(a.dx, dx);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ActivationBackward>("activation_backward", "dx = dy * f'(x), element by element");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<25>;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.input = "dy", .output = "dx", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::activation_backward
