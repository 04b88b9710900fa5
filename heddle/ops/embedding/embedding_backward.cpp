#include "heddle/ops/embedding/embedding_backward.h"

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::embedding_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<EmbeddingBackward>(args);
  require_record("embedding_backward", "state", a.state);
  require_rank("embedding_backward", "table", a.table, 2);
  require_float("embedding_backward", "table", a.table);
  require_rank("embedding_backward", "dy", a.dy, 2);
  require_shape("embedding_backward", "dy", a.dy, {a.dy.size[0], a.table.last()});
  require_float("embedding_backward", "dy", a.dy);
  if (a.dcopy.rank > 0) {
    require_shape("embedding_backward", "dcopy", a.dcopy, {a.dy.size[0], a.dy.last()});
    require_float("embedding_backward", "dcopy", a.dcopy);
  }
  set_output("embedding_backward", "dtable", a.dtable, DType::kF32, {a.table.size[0], a.table.last()});
  require_dtype("embedding_backward", "dtable", a.dtable, DType::kF32);
}

// Most rows of a large table get no row of dy: a tile of few rows need not look for them twice.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<EmbeddingBackward>(args);
  return {{.dim = "V", .extent = a.dtable.size[0], .preferred = 16},
          {.dim = "D", .extent = a.dtable.last(), .preferred = 4096}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<EmbeddingBackward>(args);
  out.push_back(whole(a.state, Access::kRead));
  for (const Tensor* given : {&a.dy, &a.dcopy})
    if (given->exists()) {
      Region rows = part_of(*given, Access::kRead, {{0, given->size[0]}, {t[2], t[3]}});
      rows.indexed = true;
      out.push_back(rows);
    }
  out.push_back(part_of(a.dtable, Access::kWrite, {{t[0], t[1]}, {t[2], t[3]}}));
}

// Which tile adds a row is chosen by data: each counts its share of the rows.
double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<EmbeddingBackward>(args);
  const double share = double(t[1] - t[0]) / a.dtable.size[0];
  return 2.0 * a.dy.size[0] * share * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<EmbeddingBackward>(args);
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  auto dy = values.read(a.dy);
  if (a.dcopy.exists()) {
    const auto dcopy = values.read(a.dcopy);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] += dcopy[i];
  }
  const size_t columns = size_t(a.dtable.last());
  std::vector<double> dtable(size_t(a.dtable.size[0]) * columns);
  for (size_t row = 0; row < size_t(a.dy.size[0]); ++row) {
    const i32 at = a.by_position ? device.position()[row] : device.token()[row];
    if (at < 0 || at >= a.dtable.size[0]) continue;
    for (size_t i = 0; i < columns; ++i)
      dtable[size_t(at) * columns + i] += dy[row * columns + i] * double(a.scale);
  }
  values.write(a.dtable, dtable);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<EmbeddingBackward>(
        "embedding_backward", "dtable of embedding: the rows of dy, each added to the row it took");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::embedding_backward
