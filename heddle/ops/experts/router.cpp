#include "heddle/ops/experts/router.h"

#include "heddle/ir/rules.h"

namespace heddle::router {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Router>(args);
  require_rank("router", "x", a.x, 2);
  require_float("router", "x", a.x);
  require_weight("router", "w", a.w);
  require(a.x.last() == a.w.cols(), "[router] x is {}, w is {}; the last sizes must be equal",
          shape_text(a.x), shape_text(a.w.data));
  set_output("router", "y", a.y, DType::kF32, {a.x.size[0], a.w.rows()});
  require_dtype("router", "y", a.y, DType::kF32);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Router>(args);
  return {{.dim = "T", .extent = a.x.size[0], .preferred = 4},
          {.dim = "E", .extent = a.w.rows(), .unit = a.w.panel_rows, .preferred = 32}};
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * (t[1] - t[0]) * (t[3] - t[2]) * as<Router>(args).w.cols();
}

// The FP32 operand of a tile, in rows of whole 64 bytes.
i64 scratch(const std::byte* args, const TileCoord& t) {
  return (t[1] - t[0]) * ((as<Router>(args).w.cols() + 15) / 16 * 16) * i64(sizeof(float));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Router>(args);
  const auto x = values.read(a.x), w = values.read(a.w);
  const size_t rows = size_t(a.x.size[0]), experts = size_t(a.w.rows()), k = size_t(a.w.cols());
  std::vector<double> y(rows * experts, 0.0);
  for (size_t t = 0; t < rows; ++t)
    for (size_t e = 0; e < experts; ++e)
      for (size_t i = 0; i < k; ++i) y[t * experts + e] += x[t * k + i] * w[e * k + i];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Router>("router", "logits of experts: x w^T in FP32, whatever the weight's dtype");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::router
