#include "heddle/ops/activation/gated_product_backward.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/activation/activation_reference.h"

namespace heddle::gated_product_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GatedProductBackward>(args);
  const char* const op = "gated_product_backward";
  require_rank(op, "gate", a.gate, 2);
  require_float(op, "gate", a.gate);
  const std::vector<i32> shape = {a.gate.size[0], a.gate.last()};
  require_shape(op, "up", a.up, shape);
  require_float(op, "up", a.up);
  require_shape(op, "dy", a.dy, shape);
  require_float(op, "dy", a.dy);
  require(a.kind >= 0 && a.kind < kNumActivations, "[{}] kind = {}; must be 0 to {}", op, a.kind,
          kNumActivations - 1);
  set_output(op, "dgate", a.dgate, a.gate.dtype, shape);
  set_output(op, "dup", a.dup, a.up.dtype, shape);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<GatedProductBackward>(args);
  return matrix_axes(a.gate.size[0], a.gate.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GatedProductBackward>(args);
  const auto gate = values.read(a.gate), up = values.read(a.up);
  auto dgate = values.read(a.dy), dup = dgate;
  for (size_t i = 0; i < gate.size(); ++i) {
    dgate[i] *= up[i] * activation_slope_reference(a.kind, gate[i]);
    dup[i] *= activation_reference(a.kind, gate[i]);
  }
  values.write(a.dgate, dgate);
  values.write(a.dup, dup);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<GatedProductBackward>(args);
  return {.matrices = {&a.gate, &a.up, &a.dy, &a.dgate, &a.dup}, .kind = a.kind, .adds_up = false};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GatedProductBackward>("gated_product_backward",
                                            "dgate = dy * up * f'(gate), dup = dy * f(gate)");
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

}  // namespace heddle::gated_product_backward
