#include "heddle/ops/multiply/multiply.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::multiply {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Multiply>(args);
  require_rank("multiply", "a", a.a, 2);
  require_float("multiply", "a", a.a);
  require_shape("multiply", "b", a.b, {a.a.size[0], a.a.last()});
  require_float("multiply", "b", a.b);
  set_output("multiply", "y", a.y, a.a.dtype, {a.a.size[0], a.a.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Multiply>(args);
  return matrix_axes(a.a.size[0], a.a.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Multiply>(args);
  auto y = values.read(a.a), b = values.read(a.b);
  for (size_t i = 0; i < y.size(); ++i) y[i] *= b[i];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Multiply>("multiply", "y = a * b, element by element");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<1>;
    op.reference = reference;
    op.cases = cases;
    set_value_kernel(op);
    op.traits = {.epilogue = true, .input = "a", .output = "y", .in_place = true};
    op.gradient = {{"multiply", {{"a", "dy"}, {"y", "da"}}},
                   {"multiply", {{"a", "dy"}, {"b", "a"}, {"y", "db"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::multiply
