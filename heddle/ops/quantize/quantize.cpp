#include "heddle/ops/quantize/quantize.h"

#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/quantize/quantize_rules.h"

namespace heddle::quantize {

std::vector<Case> cases();

namespace {

i32 group_of(const Quantize& a) {
  return a.by == kScaleByRow ? a.x.last() : kCodeBlock;
}

void infer(std::byte* args) {
  auto& a = as<Quantize>(args);
  require_rank("quantize", "x", a.x, 2);
  require_float("quantize", "x", a.x);
  require(a.by >= 0 && a.by < kNumScaleKinds, "[quantize] by = {}; must be 0 or 1", a.by);
  set_codes("quantize", "codes", a.codes, a.code, {a.x.size[0], a.x.last()});
  set_output("quantize", "scales", a.scales, DType::kF32, {a.x.size[0], groups_of(a.x.last(), group_of(a))});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<Quantize>(args).x.size[0]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Quantize>(args);
  const Coded made = coded(values.read(a.x), size_t(a.x.last()), size_t(group_of(a)), a.code);
  values.write(a.codes, made.codes);
  values.write(a.scales, made.scales);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Quantize>(args);
  RowWork work{.form = RowForm::kRows, .matrices = {&a.x}, .kind = a.by + 2 * a.code, .adds_up = false};
  if (a.codes.size[0] > 1 && a.codes.stride[0] % 8 != 0)
    work.misfit = fmt::format("rows of codes are {} bytes apart, not a multiple of 8", a.codes.stride[0]);
  return work;
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<Quantize>("quantize", "x = scale * code: codes of 8 bits, and scales of rows or blocks");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<Quantize, 12>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    return op;
  }();
  return spec;
}

}  // namespace heddle::quantize
