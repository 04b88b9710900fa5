#include "heddle/ops/recurrence/short_convolution.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::short_convolution {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ShortConvolution>(args);
  const char* const op = "short_convolution";
  require_record(op, "step", a.step);
  require_record(op, "state", a.state);
  require_rank(op, "x", a.x, 2);
  require_float(op, "x", a.x);
  require_rank(op, "weight", a.weight, 2);
  require_shape(op, "weight", a.weight, {a.weight.size[0], a.x.last()});
  if (a.bias.rank > 0) require_shape(op, "bias", a.bias, {a.x.last()});
  require_rank(op, "memory", a.memory, 3);
  require_float(op, "memory", a.memory);
  require_shape(op, "memory", a.memory, {a.memory.size[0], a.weight.size[0], a.x.last()});
  require(a.sequences > 0, "[{}] sequences = {}; must be positive", op, a.sequences);
  set_output(op, "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
  require_float(op, "y", a.y);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<ShortConvolution>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.sequences},
          {.extent = a.x.last(), .unit = 16, .preferred = target.gpu ? 128 : 512}};
}

// The step record says which rows are a sequence's, and which slot.
void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<ShortConvolution>(args);
  const i32 rows = a.x.size[0], slots = a.memory.size[0], width = a.memory.size[1];
  const std::array<i32, 2> columns = {t[1], t[2]};
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.state, Access::kRead));
  out.push_back(part_of(a.x, Access::kRead, {{0, rows}, columns}));
  out.push_back(part_of(a.weight, Access::kRead, {{0, width}, columns}));
  if (a.bias.exists()) out.push_back(part_of(a.bias, Access::kRead, {columns}));
  out.push_back(part_of(a.memory, Access::kRead, {{0, slots}, {0, width}, columns}));
  for (Region region : {part_of(a.memory, Access::kWrite, {{0, slots}, {0, width}, columns}),
                        part_of(a.y, Access::kWrite, {{0, rows}, columns})}) {
    region.indexed = true;
    out.push_back(region);
  }
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<ShortConvolution>(args);
  return 2.0 * a.x.size[0] / a.sequences * a.weight.size[0] * (t[2] - t[1]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ShortConvolution>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  const auto x = values.read(a.x), weight = values.read(a.weight), before = values.read(a.memory);
  const auto bias = a.bias.rank > 0 ? values.read(a.bias) : std::vector<double>{};
  auto y = values.read(a.y), memory = before;
  const i32 columns = a.x.last(), width = a.weight.size[0];
  const auto at = [&](i32 row, i32 c) { return size_t(row) * size_t(columns) + size_t(c); };
  for (i32 row = 0; row < host.rows; ++row) {
    const StepSequence& sequence = *host.sequence(host.row_sequence()[row]);
    const i32 position = device.position()[row];
    for (i32 c = 0; c < columns; ++c) {
      double sum = bias.empty() ? 0 : bias[size_t(c)];
      for (i32 back = 0; back < std::min(width, position + 1); ++back) {
        const bool here = row - back >= sequence.row_begin;
        const size_t kept = at(sequence.slot * width + (position - back) % width, c);
        sum += weight[at(width - 1 - back, c)] * (here ? x[at(row - back, c)] : before[kept]);
      }
      y[at(row, c)] = a.activation == 1 ? sum / (1 + std::exp(-sum)) : sum;
      memory[at(sequence.slot * width + position % width, c)] = x[at(row, c)];
    }
  }
  values.write(a.y, y);
  values.write(a.memory, memory);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ShortConvolution>("short_convolution",
                                        "a causal convolution of each column over a few positions");
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

}  // namespace heddle::short_convolution
