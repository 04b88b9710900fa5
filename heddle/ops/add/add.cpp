#include "heddle/ops/add/add.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::add {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Add>(args);
  require_rank("add", "a", a.a, 2);
  require_float("add", "a", a.a);
  require_float("add", "b", a.b);
  require_shape("add", "b", a.b, {a.a.size[0], a.a.last()});
  set_output("add", "y", a.y, a.a.dtype, {a.a.size[0], a.a.last()});
  if (a.copy.rank > 0) set_output("add", "copy", a.copy, a.a.dtype, {a.a.size[0], a.a.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Add>(args);
  return {{.dim = "M", .extent = a.a.size[0], .preferred = 16}, {.dim = "N", .extent = a.a.last()}};
}

double flops(const std::byte*, const TileCoord& t) {
  return double(t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Add>(args);
  auto y = values.read(a.a), b = values.read(a.b);
  for (size_t i = 0; i < y.size(); ++i) y[i] += b[i];
  values.write(a.y, y);
  if (a.copy.exists()) values.write(a.copy, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Add>("add", "y = a + b, and on request a rounded copy of y");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.epilogue = true, .input = "a", .output = "y", .in_place = true};
    op.gradient = {{"add_backward", {{"dx", "da"}}}, {"add_backward", {{"dx", "db"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::add
