#include "heddle/ops/rope/rope_rows_backward.h"

#include "heddle/ops/rope/turned_rows.h"

namespace heddle::rope_rows_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RopeRowsBackward>(args);
  infer_turned_rows("rope_rows_backward", a, "dy", a.dy, "dx", a.dx);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<RopeRowsBackward>(args);
  return matrix_axes(a.dy.size[0], a.dy.last(), a.head_dim);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RopeRowsBackward>(args);
  const auto dy = values.read(a.dy), table = values.read(a.table);
  auto dx = dy;
  each_turned_pair(a, a.dy, [&](size_t first, size_t second, size_t angle) {
    dx[first] = dy[first] * table[angle] + dy[second] * table[angle + 1];
    dx[second] = dy[second] * table[angle] - dy[first] * table[angle + 1];
  });
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
