#include "heddle/ops/softcap/softcap.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::softcap {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Softcap>(args);
  require_rank("softcap", "x", a.x, 2);
  require_float("softcap", "x", a.x);
  require(a.cap > 0, "[softcap] cap = {}; must be positive", a.cap);
  set_output("softcap", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Softcap>(args);
  return matrix_axes(a.x.size[0], a.x.last(), 1);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Softcap>(args);
  auto y = values.read(a.x);
  for (double& v : y) v = double(a.cap) * std::tanh(v / double(a.cap));
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Softcap>("softcap", "y = cap * tanh(x / cap)");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<20>;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.epilogue = true, .input = "x", .output = "y", .in_place = true};
    op.gradient = {{"softcap_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::softcap
