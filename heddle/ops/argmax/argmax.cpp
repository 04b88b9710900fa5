#include "heddle/ops/argmax/argmax.h"

#include <algorithm>

#include "heddle/ir/rules.h"

namespace heddle::argmax {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Argmax>(args);
  require_rank("argmax", "x", a.x, 2);
  require_float("argmax", "x", a.x);
  set_output("argmax", "y", a.y, DType::kI32, {a.x.size[0]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<Argmax>(args).x.size[0]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Argmax>(args);
  const auto is_less = [](double one, double other) {
    return !(one >= other) && one == one;
  };  // NaN is the largest
  auto x = values.read(a.x);
  std::vector<double> y;
  for (auto row = x.begin(); row != x.end(); row += a.x.last())
    y.push_back(double(std::max_element(row, row + a.x.last(), is_less) - row));
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Argmax>(
        "argmax", "y = index of the largest element of each row, lowest first; NaN counts as the largest");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<Argmax, 1>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "x", .output = "y"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::argmax
