#include "heddle/ops/sympow/state_values_backward.h"

#include "heddle/ops/sympow/power_attention_reference.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle::state_values_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<StateValuesBackward>(args);
  const char* const op = "state_values_backward";
  require_heads(op, "ds", a.ds, a.v, require_state_values(op, a));
  set_output(op, "dv", a.dv, a.v.dtype, {a.v.size[0], a.v.size[1], a.v.size[2], a.v.size[3]});
  set_output(op, "dl", a.dl, DType::kF32, {a.v.size[0], a.v.size[1], a.v.size[2]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<StateValuesBackward>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.v.size[0] * a.v.size[2]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.tiles().chunks()}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<StateValuesBackward>(args);
  const HeadRegions add(a.v, t, out);
  const i32 begin = a.tiles().chunk_begin(t[1]), end = a.tiles().chunk_end(t[1]);
  for (const Tensor* read : {&a.v, &a.l, &a.ds}) add.add(*read, Access::kRead, begin, end);
  for (const Tensor* made : {&a.dv, &a.dl}) add.add(*made, Access::kWrite, begin, end);
}

double flops(const std::byte* args, const TileCoord&) {
  const auto& a = as<StateValuesBackward>(args);
  return 3.0 * a.tiles().chunk * a.v.size[3];
}

// The decay from position t to the end of its chunk, in fp64.
double decay_of(const StateValuesBackward& a, const Decays& decays, i32 b, i32 t, i32 h) {
  const ChunkTiles tiles = a.tiles();
  return decays.from(b, h, tiles.chunk_end(t / tiles.chunk) - 1, t);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<StateValuesBackward>(args);
  const auto v = values.read(a.v), ds = values.read(a.ds);
  const Decays decays(a.l, a.v, values);
  std::vector<double> dv(v.size()), dl(v.size() / size_t(a.v.size[3]));
  for (i32 b = 0; b < a.v.size[0]; ++b)
    for (i32 t = 0; t < a.v.size[1]; ++t)
      for (i32 h = 0; h < a.v.size[2]; ++h) {
        const double decay = decay_of(a, decays, b, t, h);
        const auto value = head_row(v, a.v, b, t, h);
        const auto given = head_row(ds, a.ds, b, t, h);
        const auto to = head_row(dv, a.dv, b, t, h);
        for (size_t e = 0; e < to.size(); ++e) to[e] = decay * given[e];
        const double sum = dot(value, given.first(value.size())) + (a.normalise ? given[value.size()] : 0);
        dl[decays.at(b, t, h)] -= decay * sum;
        dl[decays.at(b, a.tiles().chunk_end(t / a.tiles().chunk) - 1, h)] += decay * sum;
      }
  values.write(a.dv, dv);
  values.write(a.dl, dl);
}

KernelPlan kernel(const std::byte* args, const KernelTarget&, const OpConfig&) {
  const auto& a = as<StateValuesBackward>(args);
  return plan_of_lanes(a.v, {why_lanes("v", a.v), why_lanes("ds", a.ds), why_lanes("dv", a.dv)},
                       i64(a.v.size[0]) * a.v.size[2] * a.tiles().chunks());
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<StateValuesBackward>("state_values_backward", "dv and dl of state_values");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = [](const std::byte*, const TileCoord&) { return i64(8) * kChunkRows; };
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::state_values_backward
