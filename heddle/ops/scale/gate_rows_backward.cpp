#include "heddle/ops/scale/gate_rows_backward.h"

#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::gate_rows_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GateRowsBackward>(args);
  require_rank("gate_rows_backward", "x", a.x, 2);
  require_float("gate_rows_backward", "x", a.x);
  require_shape("gate_rows_backward", "gate", a.gate, {a.x.size[0], 1});
  require_float("gate_rows_backward", "gate", a.gate);
  require_shape("gate_rows_backward", "dy", a.dy, {a.x.size[0], a.x.last()});
  require_float("gate_rows_backward", "dy", a.dy);
  set_output("gate_rows_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
  set_output("gate_rows_backward", "dgate", a.dgate, a.gate.dtype, {a.x.size[0], 1});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return norm_axes(as<GateRowsBackward>(args).x.size[0], target);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GateRowsBackward>(args);
  const auto x = values.read(a.x), gate = values.read(a.gate);
  auto dx = values.read(a.dy);
  std::vector<double> dgate(gate.size());
  const size_t columns = size_t(a.x.last());
  for (size_t row = 0; row < gate.size(); ++row) {
    const double open = 1 / (1 + std::exp(-gate[row]));
    for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
      dgate[row] += open * (1 - open) * x[i] * dx[i];
      dx[i] *= open;
    }
  }
  values.write(a.dx, dx);
  values.write(a.dgate, dgate);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GateRowsBackward>("gate_rows_backward", "dx and dgate of gate_rows");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<GateRowsBackward, 4>;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::gate_rows_backward
