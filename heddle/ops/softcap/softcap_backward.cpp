#include "heddle/ops/softcap/softcap_backward.h"

#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::softcap_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<SoftcapBackward>(args);
  require_rank("softcap_backward", "x", a.x, 2);
  require_float("softcap_backward", "x", a.x);
  require_shape("softcap_backward", "dy", a.dy, {a.x.size[0], a.x.last()});
  require_float("softcap_backward", "dy", a.dy);
  require(a.cap > 0, "[softcap_backward] cap = {}; must be positive", a.cap);
  set_output("softcap_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<SoftcapBackward>(args);
  return matrix_axes(a.x.size[0], a.x.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<SoftcapBackward>(args);
  const auto x = values.read(a.x);
  auto dx = values.read(a.dy);
  for (size_t i = 0; i < dx.size(); ++i) {
    const double bent = std::tanh(x[i] / double(a.cap));
    dx[i] *= 1 - bent * bent;
  }
  values.write(a.dx, dx);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<SoftcapBackward>("softcap_backward", "dx = dy * (1 - tanh(x / cap)^2)");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<22>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "dy", .output = "dx", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::softcap_backward
