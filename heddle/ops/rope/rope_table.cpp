#include "heddle/ops/rope/rope_table.h"

#include <cmath>
#include <limits>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::rope_table {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RopeTable>(args);
  require_record("rope_table", "state", a.state);
  require_rank("rope_table", "inv_freq", a.inv_freq, 1);
  require_dtype("rope_table", "inv_freq", a.inv_freq, DType::kF32);
  constexpr i32 kMost = std::numeric_limits<i32>::max() / 2;
  require(a.inv_freq.last() <= kMost, "[rope_table] inv_freq has {} elements; at most {}", a.inv_freq.last(),
          kMost);
  require(a.table.rank == 2, "[rope_table] table has {} dimensions; give it its shape [rows, {}]",
          a.table.rank, 2 * a.inv_freq.last());
  require_dtype("rope_table", "table", a.table, DType::kF32);
  set_output("rope_table", "table", a.table, DType::kF32, {a.table.size[0], 2 * a.inv_freq.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<RopeTable>(args).table.size[0]);
}

double flops(const std::byte* args, const TileCoord& t) {
  return 40.0 * (t[1] - t[0]) * as<RopeTable>(args).inv_freq.last();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RopeTable>(args);
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  auto inv_freq = values.read(a.inv_freq), table = values.read(a.table);
  const size_t pairs = inv_freq.size();
  for (size_t row = 0; row < table.size() / (2 * pairs); ++row)
    for (size_t i = 0; i < pairs; ++i) {
      const float angle = float(device.position()[row]) * float(inv_freq[i]);
      table[(row * pairs + i) * 2] = std::cos(double(angle)) * double(a.scale);
      table[(row * pairs + i) * 2 + 1] = std::sin(double(angle)) * double(a.scale);
    }
  values.write(a.table, table);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<RopeTable>("rope_table", "table = (cos, sin) of each row's position by frequency");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "table"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::rope_table
