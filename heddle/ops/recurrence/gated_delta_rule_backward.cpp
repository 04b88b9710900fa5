#include "heddle/ops/recurrence/gated_delta_rule_backward.h"

#include "heddle/ops/recurrence/delta_reference.h"

namespace heddle::gated_delta_rule_backward {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<GatedDeltaRuleBackward>(args);
  const char* const op = "gated_delta_rule_backward";
  require_delta(op, a);
  const auto* size = a.q.size;
  const i32 columns = a.v.size[3], chunks = delta_chunks(size[1]) * size[3];
  for (auto [name, tensor] : {std::pair{"error", &a.error}, {"dy", &a.dy}, {"derror", &a.derror}})
    if (tensor != &a.derror || a.derror.rank > 0)
      require_shape(op, name, *tensor, {size[0], size[1], size[2], columns});
  require_float(op, "dy", a.dy);
  require_shape(op, "last", a.last, {size[0], size[2], size[3], columns});
  if (a.dlast.rank > 0) require_shape(op, "dlast", a.dlast, {size[0], size[2], size[3], columns});
  require_shape(op, "starts", a.starts, {size[0], size[2], chunks, columns});
  if (a.dstarts.rank > 0) require_shape(op, "dstarts", a.dstarts, {size[0], size[2], chunks, columns});
  for (auto [name, tensor] : {std::pair{"dq", &a.dq}, {"dk", &a.dk}})
    set_output(op, name, *tensor, a.q.dtype, {size[0], size[1], size[2], size[3]});
  set_output(op, "dv", a.dv, a.v.dtype, {size[0], size[1], size[2], columns});
  for (auto [name, tensor] : {std::pair{"dg", &a.dg}, {"dbeta", &a.dbeta}})
    set_output(op, name, *tensor, DType::kF32, {size[0], size[1], size[2]});
  set_output(op, "ds0", a.ds0, DType::kF32, {size[0], size[2], size[3], columns});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<GatedDeltaRuleBackward>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.q.size[0] * a.q.size[2]}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<GatedDeltaRuleBackward>(args);
  const i32 heads = a.q.size[2], b = t[0] / heads, h = t[0] % heads;
  const std::array<i32, 2> batch = {b, b + 1}, head = {h, h + 1}, all = {0, a.q.size[1]};
  const auto add = [&](const Tensor& tensor, Access access) {
    if (tensor.rank == 3) out.push_back(part_of(tensor, access, {batch, all, head}));
    if (tensor.rank == 4) out.push_back(part_of(tensor, access, {batch, all, head, {0, tensor.size[3]}}));
  };
  const auto add_state = [&](const Tensor& tensor, Access access) {
    if (tensor.rank > 0)
      out.push_back(part_of(tensor, access, {batch, head, {0, tensor.size[2]}, {0, tensor.size[3]}}));
  };
  for (const Tensor* read : {&a.q, &a.k, &a.v, &a.g, &a.beta, &a.error, &a.dy, &a.derror})
    add(*read, Access::kRead);
  for (const Tensor* made : {&a.dq, &a.dk, &a.dv, &a.dg, &a.dbeta}) add(*made, Access::kWrite);
  for (const Tensor* read : {&a.last, &a.starts, &a.dlast, &a.dstarts}) add_state(*read, Access::kRead);
  for (Access access : {Access::kRead, Access::kWrite}) add_state(a.ds0, access);
}

double flops(const std::byte* args, const TileCoord&) {
  const auto& a = as<GatedDeltaRuleBackward>(args);
  return double(a.q.size[1]) *
         (12.0 * a.q.size[3] * a.v.size[3] + kDeltaChunk * (8.0 * a.q.size[3] + 8.0 * a.v.size[3]));
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<GatedDeltaRuleBackward>(args);
  return i64(4) * kDeltaChunk * (4 + 4 * kDeltaChunk + a.v.size[3] + 2 * i64(a.q.size[3]));
}

// The gradients of one head, with all of its states.
class Head {
  template <class Numbers>
  static auto of(Numbers& values, const DeltaHead& head, i32 p, size_t width) {
    return head.row(values, p, i32(width));
  }

 public:
  Head(const GatedDeltaRuleBackward& a, const Values& values)
      : dim(size_t(a.q.size[3])),
        columns(size_t(a.v.size[3])),
        chunks(size_t(delta_chunks(a.q.size[1]))),
        scale(double(delta_scale(a.scale, a.q.size[3]))),
        q(values.read(a.q)),
        k(values.read(a.k)),
        v(values.read(a.v)),
        g(values.read(a.g)),
        beta(values.read(a.beta)),
        error(values.read(a.error)),
        starts(values.read(a.starts)),
        dy(values.read(a.dy)),
        dq(q.size()),
        dk(k.size()),
        dv(v.size()),
        dg(g.size()),
        dbeta(g.size()),
        ds0(size_t(elements(a.ds0))) {
    if (a.dlast.rank > 0) dlast = values.read(a.dlast);
    if (a.derror.rank > 0) derror = values.read(a.derror);
    if (a.dstarts.rank > 0) dstarts = values.read(a.dstarts);
  }

  void run(const DeltaHead& head) {
    const size_t size = dim * columns;
    std::vector<std::vector<double>> decayed;  // before each position writes
    std::vector<double> state(size);
    for (i32 p = 0; p < head.positions; ++p) {
      if (p % kDeltaChunk == 0)
        std::copy_n(starts.begin() + i64((head.state() * chunks + size_t(p / kDeltaChunk)) * size), size,
                    state.begin());
      for (double& value : state) value *= std::exp(g[head.at(p)]);
      decayed.push_back(state);
      each([&](size_t i, size_t j, size_t at) {
        state[at] += beta[head.at(p)] * of(k, head, p, dim)[i] * of(error, head, p, columns)[j];
      });
    }
    std::vector<double> given(size);
    if (!dlast.empty()) std::copy_n(dlast.begin() + i64(head.state() * size), size, given.begin());
    for (i32 p = head.positions - 1; p >= 0; --p) {
      go_back(head, p, decayed[size_t(p)], given);
      if (p % kDeltaChunk == 0 && !dstarts.empty()) {
        const size_t at = (head.state() * chunks + size_t(p / kDeltaChunk)) * size;
        for (size_t i = 0; i < size; ++i) given[i] += dstarts[at + i];
      }
    }
    std::ranges::copy(given, ds0.begin() + i64(head.state() * size));
  }

  size_t dim, columns, chunks;
  double scale;
  std::vector<double> q, k, v, g, beta, error, starts, dy;
  std::vector<double> dlast = {}, derror = {}, dstarts = {};
  std::vector<double> dq, dk, dv, dg, dbeta, ds0;

 private:
  template <class F>
  void each(F&& f) const {
    for (size_t i = 0; i < dim; ++i)
      for (size_t j = 0; j < columns; ++j) f(i, j, i * columns + j);
  }
  // From the gradient of the state after position p to that before it.
  void go_back(const DeltaHead& head, i32 p, const std::vector<double>& decayed, std::vector<double>& given) {
    const auto query = of(q, head, p, dim), key = of(k, head, p, dim);
    const auto miss = of(error, head, p, columns), out = of(dy, head, p, columns),
               z = of(dv, head, p, columns);
    const double b = beta[head.at(p)];
    each([&](size_t i, size_t j, size_t at) {
      of(dq, head, p, dim)[i] += scale * (decayed[at] + b * key[i] * miss[j]) * out[j];
      given[at] += scale * query[i] * out[j];
      z[j] += given[at] * key[i];
    });
    for (size_t j = 0; j < columns; ++j) {
      dbeta[head.at(p)] += z[j] * miss[j];
      z[j] = b * z[j] + (derror.empty() ? 0 : of(derror, head, p, columns)[j]);
    }
    each([&](size_t i, size_t j, size_t at) {
      of(dk, head, p, dim)[i] += given[at] * b * miss[j] - decayed[at] * z[j];
      given[at] -= key[i] * z[j];
      dg[head.at(p)] += given[at] * decayed[at];
      given[at] *= std::exp(g[head.at(p)]);
    });
  }
};

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GatedDeltaRuleBackward>(args);
  Head all(a, values);
  for_each_delta_head(a.q, [&](const DeltaHead& head) { all.run(head); });
  values.write(a.dq, all.dq);
  values.write(a.dk, all.dk);
  values.write(a.dv, all.dv);
  values.write(a.dg, all.dg);
  values.write(a.dbeta, all.dbeta);
  values.write(a.ds0, all.ds0);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GatedDeltaRuleBackward>("gated_delta_rule_backward",
                                              "the gradients of gated_delta_rule, chunk by chunk");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.kernel = kernel;
    op.traits = {.spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::gated_delta_rule_backward
