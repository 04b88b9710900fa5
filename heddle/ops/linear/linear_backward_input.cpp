#include "heddle/ops/linear/linear_backward_input.h"

#include "heddle/ir/rules.h"
#include "heddle/ops/linear/sum_of_products.h"
#include "heddle/ops/linear/sum_of_products_tiling.h"

namespace heddle {

std::vector<Case> linear_backward_input_cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<LinearBackwardInput>(args);
  require_rank("linear_backward_input", "w", a.w, 2);
  require_float("linear_backward_input", "w", a.w);
  require_rank("linear_backward_input", "dy", a.dy, 2);
  require_float("linear_backward_input", "dy", a.dy);
  require(a.dy.last() == a.w.size[0],
          "[linear_backward_input] dy is {}, w is {}; dy must have a column for each row of w",
          shape_text(a.dy), shape_text(a.w));
  set_output("linear_backward_input", "dx", a.dx, a.dy.dtype, {a.dy.size[0], a.w.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<LinearBackwardInput>(args);
  return sum_of_products_axes({.dim = "M", .extent = a.dy.size[0]}, {.dim = "K", .extent = a.w.last()},
                              target);
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<LinearBackwardInput>(args).w.size[0];
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<LinearBackwardInput>(args);
  const auto w = values.read(a.w), dy = values.read(a.dy);
  const size_t n = size_t(a.w.size[0]), k = size_t(a.w.last());
  std::vector<double> dx(size_t(a.dy.size[0]) * k);
  for (size_t i = 0; i < dy.size(); ++i)
    for (size_t c = 0; c < k; ++c) dx[i / n * k + c] += dy[i] * w[i % n * k + c];
  values.write(a.dx, dx);
}

}  // namespace

const OpSpec& linear_backward_input_op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<LinearBackwardInput>("linear_backward_input", "dx = dy w");
    op.infer = infer;
    op.axes = axes;
    op.configs = sum_of_products_configs;
    op.scratch = [](const std::byte*, const TileCoord& tile) { return sum_of_products_scratch(tile); };
    op.flops = flops;
    op.reference = reference;
    op.cases = linear_backward_input_cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle
