#include "heddle/ops/recurrence/mamba2_scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/ops/recurrence/head_states.h"

namespace heddle::mamba2_scan {

std::vector<Case> cases();

namespace {

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

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<Mamba2Scan>(args);
  HeadStateRegions r{a, t, out};
  const i32 head = r.head(), value = a.value_column(head);
  r.records();
  r.columns(a.x, value + t[2], value + t[3]);
  for (i32 column : {a.b_column(head), a.c_column(head)}) r.columns(a.x, column, column + a.state_dim());
  r.columns(a.dt, head, head + 1);
  for (const Tensor* one : {&a.rate, &a.bias, &a.skip}) r.of_head(*one);
  r.states_and_result();
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<Mamba2Scan>(args);
  return 5.0 * a.x.size[0] / a.sequences * (t[3] - t[2]) * a.state_dim();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  return i64(4) * (t[3] - t[2]) * (as<Mamba2Scan>(args).state_dim() + 2 * kPreparedRows);
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
  const Reference rows{
      a, values.read(a.x), values.read(a.dt), values.read(a.rate), values.read(a.bias), values.read(a.skip)};
  const size_t dim = size_t(a.state_dim());
  each_head_state(a, values, [&](i32 head, i32 row, std::span<double> state, std::span<double> y) {
    for (size_t m = 0; m < y.size(); ++m)
      y[m] = rows.go_on(state.subspan(m * dim, dim), row, head, a.value_column(head) + i32(m));
  });
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Mamba2Scan>("mamba2_scan",
                                  "the state space of Mamba-2 over a step's rows, with states in memory");
    op.infer = infer;
    op.axes = head_state_axes<Mamba2Scan>;
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
