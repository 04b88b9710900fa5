#include "heddle/ops/kv_append/kv_append.h"

#include <algorithm>
#include <cstdlib>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::kv_append {

std::vector<Case> cases();

namespace {

i64 width(const KvAppend& a) {
  return i64(a.keys.size[1]) * a.keys.size[3];
}

// Pages, and the first of the columns that go there.
struct Target {
  const char* column_name;
  const Tensor* pages;
  i32 column;
};

std::vector<Target> targets(const KvAppend& a) {
  std::vector<Target> all = {{"key_column", &a.keys, a.key_column}};
  if (a.values.rank > 0) all.push_back({"value_column", &a.values, a.value_column});
  return all;
}

void infer(std::byte* args) {
  auto& a = as<KvAppend>(args);
  require_record("kv_append", "step", a.step);
  require_record("kv_append", "state", a.state);
  require_rank("kv_append", "x", a.x, 2);
  require_float("kv_append", "x", a.x);
  require_rank("kv_append", "keys", a.keys, 4);
  require_float("kv_append", "keys", a.keys);
  if (a.values.rank > 0) {
    require_shape("kv_append", "values", a.values,
                  {a.keys.size[0], a.keys.size[1], a.keys.size[2], a.keys.size[3]});
    require_dtype("kv_append", "values", a.values, a.keys.dtype);
  }
  for (auto [name, pages, column] : targets(a))
    require(column >= 0 && column + width(a) <= a.x.last(),
            "[kv_append] {} = {}, x is {}; {} columns from there must lie in x", name, column,
            shape_text(a.x), width(a));
  require(a.values.rank == 0 || std::abs(i64(a.key_column) - a.value_column) >= width(a),
          "[kv_append] key_column = {} and value_column = {}; must be at least {} columns apart",
          a.key_column, a.value_column, width(a));
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<KvAppend>(args);
  return matrix_axes(a.x.size[0], a.x.last());
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<KvAppend>(args);
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.state, Access::kRead));
  if (a.x.exists()) out.push_back(part_of(a.x, Access::kRead, {{t[0], t[1]}, {t[2], t[3]}}));
  for (auto [name, pages, first] : targets(a))
    if (t[2] < first + width(a) && t[3] > first) out.push_back(whole(*pages, Access::kWrite, true));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<KvAppend>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  auto x = values.read(a.x);
  for (auto [name, pages, first] : targets(a)) {
    auto stored = values.read(*pages);
    const i32 heads = pages->size[1], page_size = pages->size[2], head_dim = pages->size[3];
    for (i32 row = 0; row < a.x.size[0]; ++row) {
      const i32 position = device.position()[row];
      const i32 page = host.pages(host.row_sequence()[row])[position / page_size];
      for (i32 n = 0; n < heads * head_dim; ++n) {
        const i32 slot = (page * heads + n / head_dim) * page_size + position % page_size;
        stored[size_t(slot) * size_t(head_dim) + size_t(n % head_dim)] =
            x[size_t(row) * size_t(a.x.last()) + size_t(first + n)];
      }
    }
    values.write(*pages, stored);
  }
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<KvAppend>("kv_append", "stores the new keys and values of a step in their pages");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = elementwise_flops<0>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.epilogue = true, .input = "x", .output = "x"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::kv_append
