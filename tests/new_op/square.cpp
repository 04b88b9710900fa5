#include "heddle/ops/square/square.h"

#include "heddle/ir/rules.h"

namespace heddle::square {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Square>(args);
  require_rank("square", "x", a.x, 2);
  require_float("square", "x", a.x);
  set_output("square", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Square>(args);
  return matrix_axes(a.x.size[0], a.x.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Square>(args);
  auto x = values.read(a.x);
  for (double& value : x) value *= value;
  values.write(a.y, x);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Square>("square", "y = x * x");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<1>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "x", .output = "y", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::square
