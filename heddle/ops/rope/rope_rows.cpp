#include "heddle/ops/rope/rope_rows.h"

#include "heddle/ir/rules.h"
#include "heddle/ops/rope/turned_rows.h"

namespace heddle::rope_rows {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RopeRows>(args);
  require_rank("rope_rows", "x", a.x, 2);
  require_float("rope_rows", "x", a.x);
  require(
      a.rotary_dim > 0 && a.rotary_dim % 2 == 0 && a.rotary_dim <= a.head_dim,
      "[rope_rows] rotary_dim = {}, head_dim = {}; rotary_dim must be even, positive and at most head_dim",
      a.rotary_dim, a.head_dim);
  require(a.heads > 0 && i64(a.heads) * a.head_dim <= a.x.last(),
          "[rope_rows] heads = {} of {} elements, x is {}; heads must be positive and lie in x", a.heads,
          a.head_dim, shape_text(a.x));
  require_shape("rope_rows", "table", a.table, {a.x.size[0], a.rotary_dim});
  require_dtype("rope_rows", "table", a.table, DType::kF32);
  set_output("rope_rows", "y", a.y, a.x.dtype, {a.x.size[0], a.x.size[1]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<RopeRows>(args);
  return matrix_axes(a.x.size[0], a.x.last(), a.head_dim);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RopeRows>(args);
  auto x = values.read(a.x), table = values.read(a.table), y = x;
  const i32 step = a.interleaved ? 1 : a.rotary_dim / 2;
  for (i32 m = 0; m < a.x.size[0]; ++m)
    for (i32 head = 0; head < a.heads; ++head)
      for (i32 i = 0; i < a.rotary_dim / 2; ++i) {
        const size_t first =
            size_t(m) * size_t(a.x.last()) + size_t(head * a.head_dim + (a.interleaved ? 2 * i : i));
        const size_t second = first + size_t(step), pair = size_t(m * a.rotary_dim + 2 * i);
        y[first] = x[first] * table[pair] - x[second] * table[pair + 1];
        y[second] = x[second] * table[pair] + x[first] * table[pair + 1];
      }
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
