#include "heddle/ops/rope/rope_rows_backward.h"

#include "heddle/ir/rules.h"
#include "heddle/ops/rope/turned_rows.h"

namespace heddle::rope_rows_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RopeRowsBackward>(args);
  require_rank("rope_rows_backward", "dy", a.dy, 2);
  require_float("rope_rows_backward", "dy", a.dy);
  require(
      a.rotary_dim > 0 && a.rotary_dim % 2 == 0 && a.rotary_dim <= a.head_dim,
      "[rope_rows_backward] rotary_dim = {}, head_dim = {}; rotary_dim must be even, positive and at most "
      "head_dim",
      a.rotary_dim, a.head_dim);
  require(a.heads > 0 && i64(a.heads) * a.head_dim <= a.dy.last(),
          "[rope_rows_backward] heads = {} of {} elements, dy is {}; heads must be positive and lie in dy",
          a.heads, a.head_dim, shape_text(a.dy));
  require_shape("rope_rows_backward", "table", a.table, {a.dy.size[0], a.rotary_dim});
  require_dtype("rope_rows_backward", "table", a.table, DType::kF32);
  set_output("rope_rows_backward", "dx", a.dx, a.dy.dtype, {a.dy.size[0], a.dy.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<RopeRowsBackward>(args);
  return matrix_axes(a.dy.size[0], a.dy.last(), a.head_dim);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RopeRowsBackward>(args);
  const auto dy = values.read(a.dy), table = values.read(a.table);
  auto dx = dy;
  const i32 pairs = a.rotary_dim / 2, next = a.interleaved ? 2 : 1, partner = a.interleaved ? 1 : pairs;
  for (i32 m = 0; m < a.dy.size[0]; ++m)
    for (i32 head = 0; head < a.heads; ++head)
      for (i32 i = 0; i < pairs; ++i) {
        const size_t first = size_t(m) * size_t(a.dy.last()) + size_t(head * a.head_dim + next * i);
        const size_t second = first + size_t(partner), angle = size_t(m * a.rotary_dim + 2 * i);
        dx[first] = dy[first] * table[angle] + dy[second] * table[angle + 1];
        dx[second] = dy[second] * table[angle] - dy[first] * table[angle + 1];
      }
  values.write(a.dx, dx);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<RopeRowsBackward>(args);
  return turned_rows(a, a.dy, a.dx);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<RopeRowsBackward>("rope_rows_backward",
                                        "dx = dy with the pairs of its leading heads turned back");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<3>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "dy", .output = "dx", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::rope_rows_backward
