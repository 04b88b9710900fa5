#include "heddle/ops/linear/linear_backward_weight.h"

#include "heddle/ir/rules.h"
#include "heddle/ops/linear/sum_of_products.h"
#include "heddle/ops/linear/sum_of_products_tiling.h"

namespace heddle {

std::vector<Case> linear_backward_weight_cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<LinearBackwardWeight>(args);
  require_rank("linear_backward_weight", "x", a.x, 2);
  require_float("linear_backward_weight", "x", a.x);
  require_rank("linear_backward_weight", "dy", a.dy, 2);
  require_float("linear_backward_weight", "dy", a.dy);
  require(a.dy.size[0] == a.x.size[0], "[linear_backward_weight] dy is {}, x is {}; their rows must be equal",
          shape_text(a.dy), shape_text(a.x));
  set_output("linear_backward_weight", "dw", a.dw, a.x.dtype, {a.dy.last(), a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<LinearBackwardWeight>(args);
  return sum_of_products_axes({.dim = "N", .extent = a.dy.last()}, {.dim = "K", .extent = a.x.last()},
                              target);
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<LinearBackwardWeight>(args).x.size[0];
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<LinearBackwardWeight>(args);
  const auto x = values.read(a.x), dy = values.read(a.dy);
  const size_t n = size_t(a.dy.last()), k = size_t(a.x.last());
  std::vector<double> dw(n * k);
  for (size_t i = 0; i < dy.size(); ++i)
    for (size_t c = 0; c < k; ++c) dw[i % n * k + c] += dy[i] * x[i / n * k + c];
  values.write(a.dw, dw);
}

}  // namespace

const OpSpec& linear_backward_weight_op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<LinearBackwardWeight>("linear_backward_weight", "dw = dy^T x");
    op.infer = infer;
    op.axes = axes;
    op.configs = sum_of_products_configs;
    op.scratch = [](const std::byte*, const TileCoord& tile) { return sum_of_products_scratch(tile); };
    op.flops = flops;
    op.reference = reference;
    op.cases = linear_backward_weight_cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle
