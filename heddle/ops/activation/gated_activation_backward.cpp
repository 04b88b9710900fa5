#include "heddle/ops/activation/gated_activation_backward.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/activation/activation_reference.h"

namespace heddle::gated_activation_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GatedActivationBackward>(args);
  require_rank("gated_activation_backward", "x", a.x, 2);
  require_float("gated_activation_backward", "x", a.x);
  require(a.x.last() % 2 == 0,
          "[gated_activation_backward] x is {}; its columns are pairs, so their number must be even",
          shape_text(a.x));
  require_shape("gated_activation_backward", "dy", a.dy, {a.x.size[0], a.x.last() / 2});
  require_float("gated_activation_backward", "dy", a.dy);
  require(a.kind >= 0 && a.kind < kNumActivations, "[gated_activation_backward] kind = {}; must be 0 to {}",
          a.kind, kNumActivations - 1);
  set_output("gated_activation_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<GatedActivationBackward>(args);
  return matrix_axes(a.x.size[0], a.x.last() / 2);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GatedActivationBackward>(args);
  const auto x = values.read(a.x), dy = values.read(a.dy);
  std::vector<double> dx(x.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    dx[2 * i] = dy[i] * x[2 * i + 1] * activation_slope_reference(a.kind, x[2 * i]);
    dx[2 * i + 1] = dy[i] * activation_reference(a.kind, x[2 * i]);
  }
  values.write(a.dx, dx);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<GatedActivationBackward>(args);
  return {.matrices = {&a.dy, &a.x, &a.dx}, .kind = a.kind, .adds_up = false};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GatedActivationBackward>("gated_activation_backward",
                                               "dx of pairs (gate, up): dy * up * f'(gate), dy * f(gate)");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<50>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    return op;
  }();
  return spec;
}

}  // namespace heddle::gated_activation_backward
