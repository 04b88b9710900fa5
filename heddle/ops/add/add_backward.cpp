#include "heddle/ops/add/add_backward.h"

#include "heddle/ir/rules.h"

namespace heddle::add_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<AddBackward>(args);
  require_rank("add_backward", "dy", a.dy, 2);
  require_float("add_backward", "dy", a.dy);
  if (a.dcopy.rank > 0) {
    require_shape("add_backward", "dcopy", a.dcopy, {a.dy.size[0], a.dy.last()});
    require_float("add_backward", "dcopy", a.dcopy);
  }
  set_output("add_backward", "dx", a.dx, a.dy.dtype, {a.dy.size[0], a.dy.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<AddBackward>(args);
  return matrix_axes(a.dy.size[0], a.dy.last());
}

double flops(const std::byte* args, const TileCoord& tile) {
  return as<AddBackward>(args).dcopy.exists() ? elementwise_flops<1>(args, tile) : 0;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<AddBackward>(args);
  auto dx = values.read(a.dy);
  if (a.dcopy.exists()) {
    const auto dcopy = values.read(a.dcopy);
    for (size_t i = 0; i < dx.size(); ++i) dx[i] += dcopy[i];
  }
  values.write(a.dx, dx);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<AddBackward>("add_backward", "dx of add: dy, plus dcopy where it is given");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "dy", .output = "dx", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::add_backward
