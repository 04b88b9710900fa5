#include "heddle/ops/embedding/embedding.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::embedding {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Embedding>(args);
  require_record("embedding", "state", a.state);
  require_weight("embedding", "table", a.table);
  require(a.y.rank == 2, "[embedding] y has {} dimensions; give it its dtype and shape [rows, {}]", a.y.rank,
          a.table.cols());
  set_output("embedding", "y", a.y, DType::kF32, {a.y.size[0], a.table.cols()});
  if (a.copy.rank > 0) set_output("embedding", "copy", a.copy, DType::kF32, {a.y.size[0], a.table.cols()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<Embedding>(args).y.size[0]);
}

double flops(const std::byte* args, const TileCoord& t) {
  return double(t[1] - t[0]) * as<Embedding>(args).table.cols();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Embedding>(args);
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  auto table = values.read(a.table), y = values.read(a.y);
  const size_t columns = size_t(a.table.cols());
  for (size_t row = 0; row < size_t(a.y.size[0]); ++row) {
    const i32 at = a.by_position ? device.position()[row] : device.token()[row];
    const bool inside = at >= 0 && at < a.table.rows();
    for (size_t i = 0; i < columns; ++i)
      y[row * columns + i] = inside ? table[size_t(at) * columns + i] * double(a.scale) : NAN;
  }
  values.write(a.y, y);
  if (a.copy.exists()) values.write(a.copy, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Embedding>("embedding", "y = rows of a table, by token or by position");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "y"};
    op.gradient = {{"embedding_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::embedding
