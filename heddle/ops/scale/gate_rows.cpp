#include "heddle/ops/scale/gate_rows.h"

#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::gate_rows {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GateRows>(args);
  require_rank("gate_rows", "x", a.x, 2);
  require_float("gate_rows", "x", a.x);
  require_float("gate_rows", "gate", a.gate);
  require_shape("gate_rows", "gate", a.gate, {a.x.size[0], 1});
  set_output("gate_rows", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<GateRows>(args);
  return matrix_axes(a.x.size[0], a.x.last(), 1);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GateRows>(args);
  auto y = values.read(a.x);
  const auto gate = values.read(a.gate);
  const size_t columns = size_t(a.x.last());
  for (size_t i = 0; i < y.size(); ++i) y[i] /= 1 + std::exp(-gate[i / columns]);
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GateRows>("gate_rows", "y = x, each row times the sigmoid of its gate");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<2>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "x", .output = "y"};
    op.gradient = {{"gate_rows_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::gate_rows
