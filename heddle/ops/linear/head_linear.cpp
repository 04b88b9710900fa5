#include "heddle/ops/linear/head_linear.h"

#include "heddle/ir/rules.h"

namespace heddle::head_linear {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<HeadLinear>(args);
  require_rank("head_linear", "x", a.x, 2);
  require_float("head_linear", "x", a.x);
  require_weight("head_linear", "w", a.w);
  require(a.heads > 0 && a.w.rows() % a.heads == 0 && a.head_rows() % a.w.panel_rows == 0,
          "[head_linear] heads = {}, w is {} in panels of {} rows; each head must have as many whole panels",
          a.heads, shape_text(a.w.data), a.w.panel_rows);
  require(i64(a.heads) * a.w.cols() == a.x.last(),
          "[head_linear] x is {}, w is {}, heads = {}; x must have w's columns for each head",
          shape_text(a.x), shape_text(a.w.data), a.heads);
  set_output("head_linear", "y", a.y, a.x.dtype, {a.x.size[0], a.w.rows()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<HeadLinear>(args);
  return {{.dim = "M", .extent = a.x.size[0], .preferred = 256},
          {.dim = "N", .extent = a.w.rows(), .unit = a.w.panel_rows, .preferred = 512}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<HeadLinear>(args).w.cols();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<HeadLinear>(args);
  auto x = values.read(a.x), w = values.read(a.w);
  const size_t rows = size_t(a.x.size[0]), n = size_t(a.w.rows()), k = size_t(a.w.cols());
  std::vector<double> y(rows * n);
  for (size_t m = 0; m < rows; ++m)
    for (size_t c = 0; c < n; ++c) {
      const size_t head = c / size_t(a.head_rows());
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += x[(m * size_t(a.heads) + head) * k + i] * w[c * k + i];
      y[m * n + c] = sum;
    }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<HeadLinear>("head_linear", "y = x w^T with rows of the weight of each head's own");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.main = true, .spreads_nan = true};  // a GPU multiplies x in three parts
    return op;
  }();
  return spec;
}

}  // namespace heddle::head_linear
