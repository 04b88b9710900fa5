#include "heddle/ops/sympow/state_values.h"

#include "heddle/ops/sympow/power_attention_reference.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle::state_values {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<StateValues>(args);
  const i32 columns = require_state_values("state_values", a);
  set_output("state_values", "s", a.s, a.v.dtype, {a.v.size[0], a.v.size[1], a.v.size[2], columns});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<StateValues>(args);
  return head_axes(a.v, a.tiles());
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<StateValues>(args);
  const HeadRegions add(a.v, t, out);
  const ChunkTiles tiles = a.tiles();
  const i32 begin = tiles.begin(t[1]), end = tiles.end(t[1]);
  add.add(a.v, Access::kRead, begin, end);
  add.add(a.l, Access::kRead, begin, tiles.chunk_end(tiles.chunk_of(t[1])));
  add.add(a.s, Access::kWrite, begin, end);
}

double flops(const std::byte* args, const TileCoord&) {
  return double(kChunkRows) * as<StateValues>(args).v.size[3];
}

// The decay from position t to the end of its chunk, in fp64.
double decay_of(const StateValues& a, const Decays& decays, i32 b, i32 t, i32 h) {
  const ChunkTiles tiles = a.tiles();
  return decays.from(b, h, tiles.chunk_end(t / tiles.chunk) - 1, t);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<StateValues>(args);
  const auto v = values.read(a.v);
  const Decays decays(a.l, a.v, values);
  std::vector<double> s(size_t(elements(a.s)));
  for (i32 b = 0; b < a.v.size[0]; ++b)
    for (i32 t = 0; t < a.v.size[1]; ++t)
      for (i32 h = 0; h < a.v.size[2]; ++h) {
        const double decay = decay_of(a, decays, b, t, h);
        const auto from = head_row(v, a.v, b, t, h);
        const auto to = head_row(s, a.s, b, t, h);
        for (size_t e = 0; e < from.size(); ++e) to[e] = decay * from[e];
        if (a.normalise) to[from.size()] = decay;
      }
  values.write(a.s, s);
}

KernelPlan kernel(const std::byte* args, const KernelTarget&, const OpConfig&) {
  const auto& a = as<StateValues>(args);
  return plan_of_lanes(a.v, {why_lanes("v", a.v), why_lanes("s", a.s)}, 0);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<StateValues>("state_values", "v times the decay to the end of each chunk, and the decay alone");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = [](const std::byte*, const TileCoord&) { return i64(4) * kChunkRows; };
    op.gradient = {{"state_values_backward"}};
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::state_values
