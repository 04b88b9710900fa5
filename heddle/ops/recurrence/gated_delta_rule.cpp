#include "heddle/ops/recurrence/gated_delta_rule.h"

#include "heddle/ops/recurrence/delta_reference.h"

namespace heddle::gated_delta_rule {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

constexpr i32 kPart = 32;  // columns of the state in a tile

void infer(std::byte* args) {
  auto& a = as<GatedDeltaRule>(args);
  const char* const op = "gated_delta_rule";
  require_delta(op, a);
  const auto* size = a.q.size;
  const i32 columns = a.v.size[3];
  set_output(op, "y", a.y, a.v.dtype, {size[0], size[1], size[2], columns});
  set_output(op, "last", a.last, DType::kF32, {size[0], size[2], size[3], columns});
  set_output(op, "error", a.error, DType::kF32, {size[0], size[1], size[2], columns});
  set_output(op, "starts", a.starts, DType::kF32,
             {size[0], size[2], delta_chunks(size[1]) * size[3], columns});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<GatedDeltaRule>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.q.size[0] * a.q.size[2]},
          {.extent = a.v.size[3], .unit = 16, .preferred = kPart}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<GatedDeltaRule>(args);
  const i32 heads = a.q.size[2], b = t[0] / heads, h = t[0] % heads, positions = a.q.size[1];
  const std::array<i32, 2> batch = {b, b + 1}, head = {h, h + 1}, all = {0, positions},
                           columns = {t[1], t[2]};
  for (const Tensor* whole_rows : {&a.q, &a.k})
    out.push_back(part_of(*whole_rows, Access::kRead, {batch, all, head, {0, a.q.size[3]}}));
  out.push_back(part_of(a.v, Access::kRead, {batch, all, head, columns}));
  for (const Tensor* one : {&a.g, &a.beta}) out.push_back(part_of(*one, Access::kRead, {batch, all, head}));
  if (a.s0.rank > 0) out.push_back(part_of(a.s0, Access::kRead, {batch, head, {0, a.s0.size[2]}, columns}));
  for (const Tensor* made : {&a.y, &a.error})
    out.push_back(part_of(*made, Access::kWrite, {batch, all, head, columns}));
  for (const Tensor* made : {&a.last, &a.starts})
    out.push_back(part_of(*made, Access::kWrite, {batch, head, {0, made->size[2]}, columns}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<GatedDeltaRule>(args);
  return 7.0 * a.q.size[1] * a.q.size[3] * (t[2] - t[1]);
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  return i64(4) * (t[2] - t[1]) * (as<GatedDeltaRule>(args).q.size[3] + 1);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GatedDeltaRule>(args);
  const auto q = values.read(a.q), k = values.read(a.k), v = values.read(a.v);
  const auto g = values.read(a.g), beta = values.read(a.beta);
  const auto s0 = a.s0.rank > 0 ? values.read(a.s0) : std::vector<double>{};
  const i32 dim = a.q.size[3], columns = a.v.size[3];
  const size_t size = size_t(dim) * size_t(columns), chunks = size_t(delta_chunks(a.q.size[1]));
  std::vector<double> y(v.size()), error(v.size()), last(size_t(elements(a.last)));
  std::vector<double> starts(size_t(elements(a.starts)));
  const double scale = double(delta_scale(a.scale, dim));
  for_each_delta_head(a.q, [&](const DeltaHead& head) {
    std::vector<double> state(size);
    if (!s0.empty()) std::copy_n(s0.begin() + i64(head.state() * size), size, state.begin());
    for (i32 p = 0; p < head.positions; ++p) {
      if (p % kDeltaChunk == 0)
        std::ranges::copy(state,
                          starts.begin() + i64((head.state() * chunks + size_t(p / kDeltaChunk)) * size));
      const auto key = head.row(k, p, dim), query = head.row(q, p, dim), value = head.row(v, p, columns);
      const double decay = std::exp(g[head.at(p)]);
      for (size_t j = 0; j < size_t(columns); ++j) {
        double found = 0, answer = 0;
        for (size_t i = 0; i < size_t(dim); ++i) found += (state[i * size_t(columns) + j] *= decay) * key[i];
        const double miss = value[j] - found;
        for (size_t i = 0; i < size_t(dim); ++i)
          answer += (state[i * size_t(columns) + j] += beta[head.at(p)] * miss * key[i]) * query[i];
        head.row(error, p, columns)[j] = miss;
        head.row(y, p, columns)[j] = scale * answer;
      }
    }
    std::ranges::copy(state, last.begin() + i64(head.state() * size));
  });
  values.write(a.y, y);
  values.write(a.last, last);
  values.write(a.error, error);
  values.write(a.starts, starts);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GatedDeltaRule>(
        "gated_delta_rule", "linear attention whose state forgets, and writes what it did not know");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.kernel = kernel;
    op.gradient = {{"gated_delta_rule_backward"}};
    op.traits = {.spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::gated_delta_rule
