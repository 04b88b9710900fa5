#include "heddle/ops/rms_norm/rms_norm_backward.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/part_rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::rms_norm_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RmsNormBackward>(args);
  require_rank("rms_norm_backward", "x", a.x, 2);
  require_float("rms_norm_backward", "x", a.x);
  require_shape("rms_norm_backward", "weight", a.weight, {a.x.last()});
  require_float("rms_norm_backward", "weight", a.weight);
  require_shape("rms_norm_backward", "dy", a.dy, {a.x.size[0], a.x.last()});
  require_float("rms_norm_backward", "dy", a.dy);
  if (a.dsum.rank > 0) {
    require_shape("rms_norm_backward", "dsum", a.dsum, {a.x.size[0], a.x.last()});
    require_float("rms_norm_backward", "dsum", a.dsum);
  }
  require(a.eps >= 0, "[rms_norm_backward] eps = {}; must not be negative", a.eps);
  set_output("rms_norm_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
  set_parts("rms_norm_backward", "dweight_parts", a.dweight_parts, a.x, a.part_rows);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<RmsNormBackward>(args);
  return part_axes(a.dweight_parts);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<RmsNormBackward>(args);
  for (const Tensor* rows : {&a.x, &a.dy, &a.dsum, &a.dx})
    if (rows->rank > 0)
      rows_of_parts(*rows, rows == &a.dx ? Access::kWrite : Access::kRead, t, a.parts(), {0, a.x.last()},
                    out);
  out.push_back(whole(a.weight, Access::kRead));
  out.push_back(part_of(a.dweight_parts, Access::kWrite, {{t[0], t[1]}, {0, a.x.last()}}));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RmsNormBackward>(args);
  const auto x = values.read(a.x), weight = values.read(a.weight), dy = values.read(a.dy);
  const size_t columns = weight.size();
  std::vector<double> dx(x.size()), parts(size_t(a.dweight_parts.size[0]) * columns);
  for (size_t row = 0; row < x.size() / columns; ++row) {
    const double *in = &x[row * columns], *given = &dy[row * columns];
    double squares = 0, product = 0;
    for (size_t i = 0; i < columns; ++i) {
      squares += in[i] * in[i];
      product += in[i] * given[i] * weight[i];
    }
    const double scale = 1 / std::sqrt(squares / double(columns) + double(a.eps));
    for (size_t i = 0; i < columns; ++i) {
      dx[row * columns + i] =
          scale * (weight[i] * given[i] - in[i] * scale * scale * product / double(columns));
      parts[row % size_t(a.parts()) * columns + i] += given[i] * in[i] * scale;
    }
  }
  if (a.dsum.exists()) {
    const auto dsum = values.read(a.dsum);
    for (size_t i = 0; i < dx.size(); ++i) dx[i] += dsum[i];
  }
  values.write(a.dx, dx);
  values.write(a.dweight_parts, parts);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<RmsNormBackward>(args);
  return {.form = RowForm::kParts,
          .matrices = {&a.x, &a.dy, &a.dsum, &a.dx},
          .vectors = {&a.weight},
          .sums = {&a.dweight_parts},
          .takes_several = true,
          .kept = 2,
          .takes_loose = true,
          .takes_shifted = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<RmsNormBackward>("rms_norm_backward", "dx of rms_norm, and dweight in parts of some rows");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = part_flops<RmsNormBackward, 12>;
    op.scratch = [](const std::byte* args, const TileCoord&) {
      return i64(as<RmsNormBackward>(args).most_rows()) * 4;  // a scale for each row
    };
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    return op;
  }();
  return spec;
}

}  // namespace heddle::rms_norm_backward
