#include "heddle/ops/recurrence/delta_rule.h"

#include <cmath>
#include <limits>

#include "heddle/ops/recurrence/head_states.h"

namespace heddle::delta_rule {

std::vector<Case> cases();

namespace {

constexpr i32 kMostColumns = std::numeric_limits<i32>::max();

void infer(std::byte* args) {
  auto& a = as<DeltaRule>(args);
  const char* const op = "delta_rule";
  require_record(op, "step", a.step);
  require_record(op, "state", a.state);
  require_rank(op, "memory", a.memory, 4);
  require_rank(op, "x", a.x, 2);
  require_float(op, "x", a.x);
  require(a.key_heads > 0 && a.heads() % a.key_heads == 0,
          "[{}] key_heads = {}, memory has {} heads; these must be a multiple of key_heads", op, a.key_heads,
          a.heads());
  const double columns = 2.0 * a.key_heads * a.key_dim() + double(a.heads()) * a.value_dim();
  require(columns <= kMostColumns && a.heads() <= kMostColumns / 2,
          "[{}] queries, keys and values have {} columns and {} heads; at most {}", op, columns, a.heads(),
          kMostColumns);
  const i32 rows = a.x.size[0], values = a.heads() * a.value_dim();
  require_shape(op, "x", a.x, {rows, 2 * a.key_heads * a.key_dim() + values});
  require_shape(op, "gates", a.gates, {rows, 2 * a.heads()});
  require_float(op, "gates", a.gates);
  require_shape(op, "rate", a.rate, {a.heads()});
  require_shape(op, "bias", a.bias, {a.heads()});
  require(a.sequences > 0, "[{}] sequences = {}; must be positive", op, a.sequences);
  set_output(op, "y", a.y, a.x.dtype, {rows, values});
  require_float(op, "y", a.y);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<DeltaRule>(args);
  HeadStateRegions r{a, t, out};
  const i32 head = r.head(), value = a.value_column(head);
  r.records();
  for (i32 column : {a.query_column(head), a.key_column(head)}) r.columns(a.x, column, column + a.key_dim());
  r.columns(a.x, value + t[2], value + t[3]);
  for (i32 column : {head, a.heads() + head}) r.columns(a.gates, column, column + 1);
  for (const Tensor* one : {&a.rate, &a.bias}) r.of_head(*one);
  r.states_and_result();
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<DeltaRule>(args);
  return 7.0 * a.x.size[0] / a.sequences * (t[3] - t[2]) * a.key_dim();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const i64 count = t[3] - t[2], dim = as<DeltaRule>(args).key_dim();
  return 4 * (count * dim + 2 * kPreparedRows * (dim + 1) + count);
}

// Vectors of one row and head.
struct Reference {
  const DeltaRule& a;
  std::vector<double> x, gates, rate, bias;

  double at(i32 row, i32 column) const { return x[size_t(row) * size_t(a.x.last()) + size_t(column)]; }
  std::vector<double> unit(i32 row, i32 column) const {
    std::vector<double> made;
    double sum = double(a.eps);
    for (i32 i = 0; i < a.key_dim(); ++i)
      made.push_back(at(row, column + i)), sum += made.back() * made.back();
    for (double& value : made) value /= std::sqrt(sum);
    return made;
  }
  double gate(i32 row, i32 column) const {
    return gates[size_t(row) * size_t(2 * a.heads()) + size_t(column)];
  }
  double decay(i32 row, i32 head) const {
    const double given = gate(row, a.heads() + head) + bias[size_t(head)];
    return std::exp(-std::exp(rate[size_t(head)]) * (given > 30 ? given : std::log1p(std::exp(given))));
  }
};

void reference(const std::byte* args, Values& values) {
  const auto& a = as<DeltaRule>(args);
  const Reference rows{a, values.read(a.x), values.read(a.gates), values.read(a.rate), values.read(a.bias)};
  const size_t dim = size_t(a.key_dim());
  each_head_state(a, values, [&](i32 head, i32 row, std::span<double> state, std::span<double> y) {
    const auto key = rows.unit(row, a.key_column(head)), query = rows.unit(row, a.query_column(head));
    const double beta = 1 / (1 + std::exp(-rows.gate(row, head))), decay = rows.decay(row, head);
    for (size_t j = 0; j < y.size(); ++j) {
      const auto of = state.subspan(j * dim, dim);
      double found = 0, answer = 0;
      for (size_t i = 0; i < dim; ++i) found += (of[i] *= decay) * key[i];
      const double change = beta * (rows.at(row, a.value_column(head) + i32(j)) - found);
      for (size_t i = 0; i < dim; ++i) answer += (of[i] += change * key[i]) * query[i];
      y[j] = answer / std::sqrt(double(dim));
    }
  });
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<DeltaRule>("delta_rule", "the gated delta rule over a step's rows, with states in memory");
    op.infer = infer;
    op.axes = head_state_axes<DeltaRule>;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::delta_rule
