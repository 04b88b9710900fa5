#include "heddle/ops/quantize/quantize_at.h"

#include "heddle/ops/quantize/quantize_rules.h"

namespace heddle::quantize_at {

std::vector<Case> cases();

namespace {

void require_scales(const char* name, const Tensor& scales, i32 lines, i32 terms) {
  require_rank("quantize_at", name, scales, 2);
  require_dtype("quantize_at", name, scales, DType::kF32);
  const i32 high = scales.size[0], wide = scales.size[1];
  const bool is_known = (high == 1 && wide == 1) || (high == lines && wide == 1) ||
                        (high == groups_of(lines) && wide == groups_of(terms));
  require(is_known, "[quantize_at] {} is [{}, {}], of {} lines of {}; must be [1, 1] or [{}, 1] or [{}, {}]",
          name, high, wide, lines, terms, lines, groups_of(lines), groups_of(terms));
}

void infer(std::byte* args) {
  auto& a = as<QuantizeAt>(args);
  require_rank("quantize_at", "x", a.x, 2);
  require_float("quantize_at", "x", a.x);
  const i32 rows = a.x.size[0], columns = a.x.last();
  require_scales("scales", a.scales, rows, columns);
  require_scales("transposed_scales", a.transposed_scales, columns, rows);
  set_codes("quantize_at", "codes", a.codes, a.code, {rows, columns});
  set_codes("quantize_at", "transposed", a.transposed, a.code, {columns, rows});
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<QuantizeAt>(args);
  const i32 columns = a.x.last();
  out.push_back(part_of(a.x, Access::kRead, {{t[0], t[1]}, {0, columns}}));
  for (const Tensor* scales : {&a.scales, &a.transposed_scales})
    out.push_back(part_of(*scales, Access::kRead, {{0, scales->size[0]}, {0, scales->size[1]}}));
  out.push_back(part_of(a.codes, Access::kWrite, {{t[0], t[1]}, {0, columns}}));
  out.push_back(part_of(a.transposed, Access::kWrite, {{0, columns}, {t[0], t[1]}}));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<QuantizeAt>(args);
  const std::vector<double> x = values.read(a.x), scales = values.read(a.scales),
                            turned_scales = values.read(a.transposed_scales);
  const i32 rows = a.x.size[0], columns = a.x.last();
  const auto code_at = [&](const std::vector<double>& from, const Tensor& of, std::array<i32, 3> place,
                           double value) {
    const auto [line, term, lines] = place;
    const i32 number =
        place_of_scale(line, of.size[0], lines) * of.size[1] + (of.size[1] == 1 ? 0 : term / kCodeBlock);
    return code_near(value / from[size_t(number)], double(kLargestCode[a.code]), a.code);
  };
  std::vector<double> codes(x.size()), turned(x.size());
  for (i32 row = 0; row < rows; ++row)
    for (i32 column = 0; column < columns; ++column) {
      const size_t at = size_t(row) * size_t(columns) + size_t(column);
      codes[at] = code_at(scales, a.scales, {row, column, rows}, x[at]);
      turned[size_t(column) * size_t(rows) + size_t(row)] =
          code_at(turned_scales, a.transposed_scales, {column, row, columns}, x[at]);
    }
  values.write(a.codes, codes);
  values.write(a.transposed, turned);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<QuantizeAt>(
        "quantize_at", "codes of 8 bits at given scales, of x and of x transposed: x = scale * code");
    op.infer = infer;
    op.axes = both_axes<QuantizeAt>;
    op.regions = regions;
    op.flops = rowwise_flops<QuantizeAt, 16>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, both_work<QuantizeAt>);
    return op;
  }();
  return spec;
}

}  // namespace heddle::quantize_at
