#include "heddle/ops/recurrence/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::delta_rule {

std::vector<Case> cases();

namespace {

constexpr i32 kMostColumns = std::numeric_limits<i32>::max();
constexpr i32 kRows = 16, kPart = 32;  // rows that are prepared at a time; rows of the state in a tile

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

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<DeltaRule>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.sequences},
          {.kind = TileAxis::Kind::kIndex, .extent = a.heads()},
          {.extent = a.value_dim(), .unit = 16, .preferred = kPart}};
}

// The step record says which rows are a sequence's, and which slot.
void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<DeltaRule>(args);
  const i32 rows = a.x.size[0], head = t[1], dim = a.key_dim(), value = a.value_column(head);
  const auto read = [&](const Tensor& tensor, i32 begin, i32 end) {
    out.push_back(part_of(tensor, Access::kRead, {{0, rows}, {begin, end}}));
  };
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.state, Access::kRead));
  for (i32 column : {a.query_column(head), a.key_column(head)}) read(a.x, column, column + dim);
  read(a.x, value + t[2], value + t[3]);
  for (i32 column : {head, a.heads() + head}) read(a.gates, column, column + 1);
  for (const Tensor* one : {&a.rate, &a.bias})
    out.push_back(part_of(*one, Access::kRead, {{head, head + 1}}));
  const i32 y = head * a.value_dim();
  const std::initializer_list<std::array<i32, 2>> states = {
      {0, a.memory.size[0]}, {head, head + 1}, {t[2], t[3]}, {0, dim}};
  out.push_back(part_of(a.memory, Access::kRead, states));
  for (Region region : {part_of(a.memory, Access::kWrite, states),
                        part_of(a.y, Access::kWrite, {{0, rows}, {y + t[2], y + t[3]}})}) {
    region.indexed = true;
    out.push_back(region);
  }
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<DeltaRule>(args);
  return 7.0 * a.x.size[0] / a.sequences * (t[3] - t[2]) * a.key_dim();
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const i64 count = t[3] - t[2], dim = as<DeltaRule>(args).key_dim();
  return 4 * (count * dim + 2 * kRows * (dim + 1) + count);
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
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  const Reference rows{a, values.read(a.x), values.read(a.gates), values.read(a.rate), values.read(a.bias)};
  auto memory = values.read(a.memory), y = values.read(a.y);
  const size_t dim = size_t(a.key_dim()), count = size_t(a.value_dim()), size = dim * count;
  for (i32 s = 0; s < host.sequences; ++s)
    for (i32 head = 0; head < a.heads(); ++head) {
      const StepSequence& sequence = *host.sequence(s);
      const i32 first = sequence.row_begin, last = first + sequence.row_count;
      const auto place = [&](i32 position) {
        const i32 at = (2 * sequence.slot + position % 2) * a.heads() + head;
        return std::span(memory).subspan(size_t(at) * size, size);
      };
      const i32 start = device.position()[first];
      std::vector<double> state(size);
      if (start > 0) std::ranges::copy(place(start - 1), state.begin());
      for (i32 row = first; row < last; ++row) {
        const auto key = rows.unit(row, a.key_column(head)), query = rows.unit(row, a.query_column(head));
        const double beta = 1 / (1 + std::exp(-rows.gate(row, head))), decay = rows.decay(row, head);
        for (size_t j = 0; j < count; ++j) {
          const auto of = std::span(state).subspan(j * dim, dim);
          double found = 0, answer = 0;
          for (size_t i = 0; i < dim; ++i) found += (of[i] *= decay) * key[i];
          const double change = beta * (rows.at(row, a.value_column(head) + i32(j)) - found);
          for (size_t i = 0; i < dim; ++i) answer += (of[i] += change * key[i]) * query[i];
          y[size_t(row) * size_t(a.y.last()) + size_t(head) * count + j] = answer / std::sqrt(double(dim));
        }
      }
      std::ranges::copy(state, place(start + last - first - 1).begin());
    }
  values.write(a.memory, memory);
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<DeltaRule>("delta_rule", "the gated delta rule over a step's rows, with states in memory");
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

}  // namespace heddle::delta_rule
