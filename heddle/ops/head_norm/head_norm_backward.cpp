#include "heddle/ops/head_norm/head_norm_backward.h"

#include <algorithm>
#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/part_rules.h"
#include "heddle/kit/rows/parts.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::head_norm_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<HeadNormBackward>(args);
  require_rank("head_norm_backward", "x", a.x, 2);
  require_float("head_norm_backward", "x", a.x);
  require(a.heads > 0 && a.head_dim > 0 && i64(a.heads) * a.head_dim <= a.x.last(),
          "[head_norm_backward] heads = {} of {} elements, x is {}; both must be positive and the heads lie "
          "in x",
          a.heads, a.head_dim, shape_text(a.x));
  require_shape("head_norm_backward", "weight", a.weight, {a.heads * a.head_dim});
  require_float("head_norm_backward", "weight", a.weight);
  require_shape("head_norm_backward", "dy", a.dy, {a.x.size[0], a.x.last()});
  require_float("head_norm_backward", "dy", a.dy);
  require(a.eps >= 0, "[head_norm_backward] eps = {}; must not be negative", a.eps);
  set_output("head_norm_backward", "dx", a.dx, a.x.dtype, {a.x.size[0], a.x.last()});
  set_parts("head_norm_backward", "dweight_parts", a.dweight_parts, columns_of(a.x, 0, a.weight.last()),
            a.most_rows());
}

// Columns are cut as head_norm cuts them.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<HeadNormBackward>(args);
  std::vector<TileAxis> axes = part_axes(a.dweight_parts);
  axes.push_back(
      {.dim = "N", .extent = a.x.last(), .unit = a.head_dim, .preferred = target.gpu ? a.head_dim : 4096});
  return axes;
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<HeadNormBackward>(args);
  for (const Tensor* rows : {&a.x, &a.dy, &a.dx})
    rows_of_parts(*rows, rows == &a.dx ? Access::kWrite : Access::kRead, t, a.parts(), {t[2], t[3]}, out);
  const i32 normed = std::min(t[3], a.weight.last());
  if (t[2] >= normed) return;
  out.push_back(part_of(a.weight, Access::kRead, {{t[2], normed}}));
  out.push_back(part_of(a.dweight_parts, Access::kWrite, {{t[0], t[1]}, {t[2], normed}}));
}

// The head that begins at element `at`: its columns of dx, and what its row adds to dweight.
void backward_head(const HeadNormBackward& a, const double* x, const double* weight, const double* dy,
                   double* dx, double* dweight) {
  const size_t dim = size_t(a.head_dim);
  double mean = 0, squares = 0, given = 0, along = 0;
  for (size_t i = 0; i < dim && a.centred; ++i) {
    mean += x[i] / double(dim);
    given += weight[i] * dy[i] / double(dim);
  }
  for (size_t i = 0; i < dim; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1 / std::sqrt(squares / double(dim) + double(a.eps));
  for (size_t i = 0; i < dim; ++i) along += weight[i] * dy[i] * (x[i] - mean) * scale / double(dim);
  for (size_t i = 0; i < dim; ++i) {
    const double z = (x[i] - mean) * scale;
    dx[i] = scale * (weight[i] * dy[i] - given - z * along);
    dweight[i] += dy[i] * z;
  }
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<HeadNormBackward>(args);
  return 18.0 * double(count_rows_of_parts(a.x, t, a.parts())) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<HeadNormBackward>(args);
  const auto x = values.read(a.x), weight = values.read(a.weight), dy = values.read(a.dy);
  auto dx = dy;
  const size_t columns = size_t(a.x.last()), normed = weight.size();
  std::vector<double> parts(size_t(a.dweight_parts.size[0]) * normed);
  for (size_t row = 0; row < x.size() / columns; ++row)
    for (size_t head = 0; head < normed; head += size_t(a.head_dim)) {
      const size_t at = row * columns + head;
      backward_head(a, &x[at], &weight[head], &dy[at], &dx[at],
                    &parts[row % size_t(a.parts()) * normed + head]);
    }
  values.write(a.dx, dx);
  values.write(a.dweight_parts, parts);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<HeadNormBackward>(args);
  return {.form = RowForm::kParts,
          .matrices = {&a.x, &a.dy, &a.dx},
          .vectors = {&a.weight},
          .sums = {&a.dweight_parts},
          .piece = a.head_dim,
          .kind = a.centred != 0,
          .kept = 2,
          .takes_loose = true,
          .takes_shifted = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<HeadNormBackward>("head_norm_backward", "dx of head_norm, and dweight in parts of some rows");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = [](const std::byte* args, const TileCoord&) {
      return i64(as<HeadNormBackward>(args).most_rows()) * 2 * 4;  // mean and scale of each row
    };
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    return op;
  }();
  return spec;
}

}  // namespace heddle::head_norm_backward
