#include "heddle/ops/activation/clamped_gate.h"

#include <algorithm>
#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::clamped_gate {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ClampedGate>(args);
  require_rank("clamped_gate", "x", a.x, 2);
  require_float("clamped_gate", "x", a.x);
  require(a.x.last() % 2 == 0, "[clamped_gate] x is {}; its columns are pairs, so their number must be even",
          shape_text(a.x));
  require(a.limit > 0 && std::isfinite(a.alpha),
          "[clamped_gate] limit = {}, alpha = {}; limit must be positive", a.limit, a.alpha);
  set_output("clamped_gate", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last() / 2});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<ClampedGate>(args);
  return {{.dim = "M", .extent = a.x.size[0], .preferred = 16}, {.dim = "N", .extent = a.x.last() / 2}};
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ClampedGate>(args);
  const auto x = values.read(a.x);
  const double limit = double(a.limit);
  std::vector<double> y(x.size() / 2);
  for (size_t i = 0; i < y.size(); ++i) {
    const double gate = std::min(x[2 * i], limit), up = std::clamp(x[2 * i + 1], -limit, limit);
    y[i] = (up + 1) * gate / (1 + std::exp(-double(a.alpha) * gate));
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ClampedGate>("clamped_gate", "y = (up + 1) gate sigmoid(alpha gate), of clamped pairs");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<24>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.epilogue = true, .input = "x", .output = "y", .columns_per_output = 2};
    return op;
  }();
  return spec;
}

}  // namespace heddle::clamped_gate
