#include "heddle/ops/activation/gated_product.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/activation/activation_reference.h"

namespace heddle::gated_product {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GatedProduct>(args);
  require_rank("gated_product", "gate", a.gate, 2);
  require_float("gated_product", "gate", a.gate);
  require_shape("gated_product", "up", a.up, {a.gate.size[0], a.gate.last()});
  require_float("gated_product", "up", a.up);
  require(a.kind >= 0 && a.kind < kNumActivations, "[gated_product] kind = {}; must be 0 to {}", a.kind,
          kNumActivations - 1);
  set_output("gated_product", "y", a.y, a.gate.dtype, {a.gate.size[0], a.gate.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<GatedProduct>(args);
  return matrix_axes(a.gate.size[0], a.gate.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GatedProduct>(args);
  auto y = values.read(a.gate);
  const auto up = values.read(a.up);
  for (size_t i = 0; i < y.size(); ++i) y[i] = activation_reference(a.kind, y[i]) * up[i];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GatedProduct>("gated_product", "y = f(gate) * up, of two matrices");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<21>;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.epilogue = true, .input = "gate", .output = "y", .in_place = true};
    op.gradient = {{"gated_product_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::gated_product
