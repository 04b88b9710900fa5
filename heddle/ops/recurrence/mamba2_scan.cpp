#include "heddle/ops/recurrence/mamba2_scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::mamba2_scan {

std::vector<Case> cases();

namespace {

constexpr i32 kRows = 16, kPart = 32;  // rows that are prepared at a time; rows of the state in a tile

void infer(std::byte* args) {
  auto& a = as<Mamba2Scan>(args);
  const char* const op = "mamba2_scan";
  require_record(op, "step", a.step);
  require_record(op, "state", a.state);
  require_rank(op, "memory", a.memory, 4);
  require_rank(op, "x", a.x, 2);
  require_float(op, "x", a.x);
  require(a.groups > 0 && a.heads() % a.groups == 0,
          "[{}] groups = {}, memory has {} heads; these must be a multiple of groups", op, a.groups,
          a.heads());
  const double columns = double(a.heads()) * a.head_dim() + 2.0 * a.groups * a.state_dim();
  constexpr i32 kMost = std::numeric_limits<i32>::max();
  require(columns <= kMost, "[{}] x, B and C have {} columns; at most {}", op, columns, kMost);
  const i32 rows = a.x.size[0], values = a.heads() * a.head_dim();
  require_shape(op, "x", a.x, {rows, values + 2 * a.groups * a.state_dim()});
  require_shape(op, "dt", a.dt, {rows, a.heads()});
  require_float(op, "dt", a.dt);
  for (auto [name, tensor] : {std::pair{"rate", &a.rate}, {"bias", &a.bias}, {"skip", &a.skip}})
    require_shape(op, name, *tensor, {a.heads()});
  require(a.sequences > 0, "[{}] sequences = {}; must be positive", op, a.sequences);
  require(a.least >= 0 && (a.most == 0 || a.most >= a.least),
          "[{}] least = {}, most = {}; least must not be negative, and most is 0 or not below it", op,
          a.least, a.most);
  set_output(op, "y", a.y, a.x.dtype, {rows, values});
  require_float(op, "y", a.y);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Mamba2Scan>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.sequences},
          {.kind = TileAxis::Kind::kIndex, .extent = a.heads()},
          {.extent = a.head_dim(), .unit = 16, .preferred = kPart}};
}

// The step record says which rows are a sequence's, and which slot.
void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<Mamba2Scan>(args);
  const i32 rows = a.x.size[0], head = t[1], dim = a.state_dim(), value = a.value_column(head);
  const auto read = [&](const Tensor& tensor, i32 begin, i32 end) {
    out.push_back(part_of(tensor, Access::kRead, {{0, rows}, {begin, end}}));
  };
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.state, Access::kRead));
  read(a.x, value + t[2], value + t[3]);
  for (i32 column : {a.b_column(head), a.c_column(head)}) read(a.x, column, column + dim);
  read(a.dt, head, head + 1);
  for (const Tensor* one : {&a.rate, &a.bias, &a.skip})
    out.push_back(part_of(*one, Access::kRead, {{head, head + 1}}));
  const std::initializer_list<std::array<i32, 2>> states = {
      {0, a.memory.size[0]}, {head, head + 1}, {t[2], t[3]}, {0, dim}};
  out.push_back(part_of(a.memory, Access::kRead, states));
  for (Region region : {part_of(a.memory, Access::kWrite, states),
                        part_of(a.y, Access::kWrite, {{0, rows}, {value + t[2], value + t[3]}})}) {
    region.indexed = true;
    out.push_back(region);
  }
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<Mamba2Scan>(args);
  return 5.0 * a.x.size[0] / a.sequences * (t[3] - t[2]) * a.state_dim();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  return i64(4) * (t[3] - t[2]) * (as<Mamba2Scan>(args).state_dim() + 2 * kRows);
}

struct Reference {
  const Mamba2Scan& a;
  std::vector<double> x, dt, rate, bias, skip;

  double at(i32 row, i32 column) const { return x[size_t(row) * size_t(a.x.last()) + size_t(column)]; }
  double step(i32 row, i32 head) const {
    const double given = dt[size_t(row) * size_t(a.heads()) + size_t(head)] + bias[size_t(head)];
    const double made = std::max(given > 30 ? given : std::log1p(std::exp(given)), double(a.least));
    return a.most > 0 ? std::min(made, double(a.most)) : made;
  }
  // y of one row of the state, which it takes from position to position.
  double go_on(std::span<double> state, i32 row, i32 head, i32 column) const {
    const double step = this->step(row, head), decay = std::exp(-std::exp(rate[size_t(head)]) * step);
    double sum = skip[size_t(head)] * at(row, column);
    for (i32 i = 0; i < a.state_dim(); ++i) {
      double& element = state[size_t(i)];
      element = decay * element + step * at(row, column) * at(row, a.b_column(head) + i);
      sum += element * at(row, a.c_column(head) + i);
    }
    return sum;
  }
};

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Mamba2Scan>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  const Reference rows{
      a, values.read(a.x), values.read(a.dt), values.read(a.rate), values.read(a.bias), values.read(a.skip)};
  auto memory = values.read(a.memory), y = values.read(a.y);
  const size_t dim = size_t(a.state_dim());
  for (i32 s = 0; s < host.sequences; ++s)
    for (i32 column = 0; column < a.y.last(); ++column) {
      const StepSequence& sequence = *host.sequence(s);
      const i32 first = sequence.row_begin, last = first + sequence.row_count;
      const auto place = [&](i32 position) {
        const i64 at = i64(2 * sequence.slot + position % 2) * a.y.last() + column;
        return std::span(memory).subspan(size_t(at) * dim, dim);
      };
      const i32 start = device.position()[first];
      std::vector<double> state(dim);
      if (start > 0) std::ranges::copy(place(start - 1), state.begin());
      for (i32 row = first; row < last; ++row)
        y[size_t(row) * size_t(a.y.last()) + size_t(column)] =
            rows.go_on(state, row, column / a.head_dim(), column);
      std::ranges::copy(state, place(start + last - first - 1).begin());
    }
  values.write(a.memory, memory);
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Mamba2Scan>("mamba2_scan",
                                  "the state space of Mamba-2 over a step's rows, with states in memory");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::mamba2_scan
