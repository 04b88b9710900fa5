#include "heddle/ops/head_norm/head_norm.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::head_norm {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<HeadNorm>(args);
  require_rank("head_norm", "x", a.x, 2);
  require_float("head_norm", "x", a.x);
  require(a.heads > 0 && a.head_dim > 0 && i64(a.heads) * a.head_dim <= a.x.last(),
          "[head_norm] heads = {} of {} elements, x is {}; both must be positive and the heads lie in x",
          a.heads, a.head_dim, shape_text(a.x));
  require_shape("head_norm", "weight", a.weight, {a.heads * a.head_dim});
  require_float("head_norm", "weight", a.weight);
  require(a.eps >= 0, "[head_norm] eps = {}; must not be negative", a.eps);
  set_output("head_norm", "y", a.y, a.x.dtype, {a.x.size[0], a.x.size[1]});
}

// A head for each tile where workers are many: every sum over a head is a barrier for all threads of a block.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<HeadNorm>(args);
  return {
      {.dim = "M", .extent = a.x.size[0], .preferred = 16},
      {.dim = "N", .extent = a.x.last(), .unit = a.head_dim, .preferred = target.gpu ? a.head_dim : 4096}};
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<HeadNorm>(args);
  auto x = values.read(a.x), weight = values.read(a.weight), y = x;
  const size_t dim = size_t(a.head_dim), columns = size_t(a.x.last());
  for (size_t row = 0; row < x.size(); row += columns)
    for (size_t head = 0; head < weight.size(); head += dim) {
      double sum = 0, squares = 0;
      for (size_t i = head; i < head + dim; ++i) sum += x[row + i];
      const double mean = a.centred ? sum / double(dim) : 0;
      for (size_t i = head; i < head + dim; ++i) squares += (x[row + i] - mean) * (x[row + i] - mean);
      const double scale = 1 / std::sqrt(squares / double(dim) + double(a.eps));
      for (size_t i = head; i < head + dim; ++i) y[row + i] = (x[row + i] - mean) * scale * weight[i];
    }
  values.write(a.y, y);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<HeadNorm>(args);
  return {.form = RowForm::kRows,
          .matrices = {&a.x, &a.y},
          .vectors = {&a.weight},
          .piece = a.head_dim,
          .kind = a.centred != 0,
          .takes_loose = true,
          .takes_shifted = true,
          .takes_fours = true};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<HeadNorm>("head_norm", "y = x with each of its leading heads normalised");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<4>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "x", .output = "y", .wants_f32 = true};
    op.gradient = {{"head_norm_backward"}, {"column_sum", {{"x", "dweight_parts"}, {"y", "dweight"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::head_norm
