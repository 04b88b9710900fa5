#include "heddle/ops/activation/gated_activation.h"

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/activation/activation_reference.h"

namespace heddle::gated_activation {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GatedActivation>(args);
  require_rank("gated_activation", "x", a.x, 2);
  require_float("gated_activation", "x", a.x);
  require(a.x.last() % 2 == 0,
          "[gated_activation] x is {}; its columns are pairs, so their number must be even", shape_text(a.x));
  require(a.kind >= 0 && a.kind < kNumActivations, "[gated_activation] kind = {}; must be 0 to {}", a.kind,
          kNumActivations - 1);
  set_output("gated_activation", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last() / 2});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<GatedActivation>(args);
  return {{.dim = "M", .extent = a.x.size[0], .preferred = 16}, {.dim = "N", .extent = a.x.last() / 2}};
}

double flops(const std::byte*, const TileCoord& t) {
  return 21.0 * (t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GatedActivation>(args);
  const auto x = values.read(a.x);
  std::vector<double> y(x.size() / 2);
  for (size_t i = 0; i < y.size(); ++i) y[i] = activation_reference(a.kind, x[2 * i]) * x[2 * i + 1];
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<GatedActivation>(args);
  return {.matrices = {&a.y, &a.x}, .kind = a.kind, .adds_up = false};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<GatedActivation>("gated_activation", "y = f(gate) * up, of pairs (gate, up) side by side");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.epilogue = true, .input = "x", .output = "y", .columns_per_output = 2};
    op.gradient = {{"gated_activation_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::gated_activation
