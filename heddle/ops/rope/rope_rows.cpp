#include "heddle/ops/rope/rope_rows.h"

#include "heddle/ops/rope/turned_rows.h"

namespace heddle::rope_rows {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RopeRows>(args);
  infer_turned_rows("rope_rows", a, "x", a.x, "y", a.y);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<RopeRows>(args);
  return matrix_axes(a.x.size[0], a.x.last(), a.head_dim);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RopeRows>(args);
  auto x = values.read(a.x), table = values.read(a.table), y = x;
  each_turned_pair(a, a.x, [&](size_t first, size_t second, size_t angle) {
    y[first] = x[first] * table[angle] - x[second] * table[angle + 1];
    y[second] = x[second] * table[angle] + x[first] * table[angle + 1];
  });
  values.write(a.y, y);
}

// A fragment may begin in the middle of a head: only neighbours are certain to lie in one.
bool can_fuse(const std::byte* args) {
  const auto& a = as<RopeRows>(args);
  return a.interleaved != 0 && a.head_dim % 2 == 0;
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<RopeRows>(args);
  return turned_rows(a, a.x, a.y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<RopeRows>("rope_rows", "y = x with the pairs of its leading heads turned by their position");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<3>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.epilogue = true, .input = "x", .output = "y", .in_place = true, .can_fuse = can_fuse};
    op.gradient = {{"rope_rows_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::rope_rows
