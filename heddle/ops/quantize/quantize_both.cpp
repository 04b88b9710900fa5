#include "heddle/ops/quantize/quantize_both.h"

#include "heddle/ops/quantize/quantize_rules.h"

namespace heddle::quantize_both {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<QuantizeBoth>(args);
  require_rank("quantize_both", "x", a.x, 2);
  require_float("quantize_both", "x", a.x);
  const i32 rows = a.x.size[0], columns = a.x.last();
  set_codes("quantize_both", "codes", a.codes, a.code, {rows, columns});
  set_codes("quantize_both", "transposed", a.transposed, a.code, {columns, rows});
  set_output("quantize_both", "scales", a.scales, DType::kF32, {rows, groups_of(columns)});
  set_output("quantize_both", "transposed_scales", a.transposed_scales, DType::kF32,
             {columns, groups_of(rows)});
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<QuantizeBoth>(args);
  const i32 columns = a.x.last();
  out.push_back(part_of(a.x, Access::kRead, {{t[0], t[1]}, {0, columns}}));
  out.push_back(part_of(a.codes, Access::kWrite, {{t[0], t[1]}, {0, columns}}));
  out.push_back(part_of(a.scales, Access::kWrite, {{t[0], t[1]}, {0, a.scales.last()}}));
  out.push_back(part_of(a.transposed, Access::kWrite, {{0, columns}, {t[0], t[1]}}));
  out.push_back(
      part_of(a.transposed_scales, Access::kWrite, {{0, columns}, {t[0] / kCodeBlock, groups_of(t[1])}}));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<QuantizeBoth>(args);
  const std::vector<double> x = values.read(a.x);
  const size_t columns = size_t(a.x.last()), rows = x.size() / columns;
  std::vector<double> turned(x.size());
  for (size_t i = 0; i < x.size(); ++i) turned[i % columns * rows + i / columns] = x[i];
  const Coded made = coded(x, columns, kCodeBlock, a.code), other = coded(turned, rows, kCodeBlock, a.code);
  values.write(a.codes, made.codes);
  values.write(a.scales, made.scales);
  values.write(a.transposed, other.codes);
  values.write(a.transposed_scales, other.scales);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<QuantizeBoth>(
        "quantize_both", "codes of 8 bits with scales of 1 x 128 blocks, of x and of x transposed");
    op.infer = infer;
    op.axes = both_axes<QuantizeBoth>;
    op.regions = regions;
    op.flops = rowwise_flops<QuantizeBoth, 24>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, both_work<QuantizeBoth>);
    return op;
  }();
  return spec;
}

}  // namespace heddle::quantize_both
