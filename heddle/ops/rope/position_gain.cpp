#include "heddle/ops/rope/position_gain.h"

#include <algorithm>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::position_gain {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<PositionGain>(args);
  require_record("position_gain", "state", a.state);
  require_rank("position_gain", "x", a.x, 2);
  require_float("position_gain", "x", a.x);
  require_rank("position_gain", "gains", a.gains, 1);
  require_dtype("position_gain", "gains", a.gains, DType::kF32);
  require(a.period > 0, "[position_gain] period = {}; must be positive", a.period);
  set_output("position_gain", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<PositionGain>(args);
  return matrix_axes(a.x.size[0], a.x.last(), 1);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<PositionGain>(args);
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  auto y = values.read(a.x);
  const auto gains = values.read(a.gains);
  const size_t columns = size_t(a.x.last());
  for (size_t i = 0; i < y.size(); ++i)
    y[i] *= gains[std::min(size_t(device.position()[i / columns] / a.period), gains.size() - 1)];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<PositionGain>("position_gain", "y = x, each row times the gain of its position");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<1>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "x", .output = "y"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::position_gain
