#include "heddle/ops/sympow/sympow_mma.h"

#include "heddle/ops/sympow/sympow_reference.h"

namespace heddle::sympow_mma {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

constexpr i32 kColumns = 128;  // a tile has so many at most

void infer(std::byte* args) {
  auto& a = as<SympowMma>(args);
  require_rank("sympow_mma", "x", a.x, 4);
  require_rank("sympow_mma", "s", a.s, 4);
  require_heads("sympow_mma", "x", a.x, a.x, a.x.size[3]);
  require_power("sympow_mma", "x", a.power, a.x.size[3]);
  require_states("sympow_mma", "s", a.s, a.x, a.tiles(), a.width(), a.s.size[3]);
  set_output("sympow_mma", "y", a.y, a.x.dtype, {a.x.size[0], a.x.size[1], a.x.size[2], a.s.size[3]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<SympowMma>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.x.size[0] * a.x.size[2]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.tiles().tiles()},
          {.dim = "E", .extent = a.s.size[3], .unit = 8, .preferred = kColumns}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<SympowMma>(args);
  const ChunkTiles tiles = a.tiles();
  const i32 b = t[0] / a.x.size[2], h = t[0] % a.x.size[2], s = tiles.chunk_of(t[1]) * a.width();
  const std::array<i32, 2> rows = {tiles.begin(t[1]), tiles.end(t[1])}, columns = {t[2], t[3]};
  out.push_back(part_of(a.x, Access::kRead, {{b, b + 1}, rows, {h, h + 1}, {0, a.x.size[3]}}));
  out.push_back(part_of(a.s, Access::kRead, {{b, b + 1}, {h, h + 1}, {s, s + a.width()}, columns}));
  out.push_back(part_of(a.y, Access::kWrite, {{b, b + 1}, rows, {h, h + 1}, columns}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<SympowMma>(args);
  return 2.0 * (a.tiles().end(t[1]) - a.tiles().begin(t[1])) * a.width() * (t[3] - t[2]);
}

i64 scratch(const std::byte*, const TileCoord& t) {
  return i64(4) * (kChunkRows * kSympowGroup + (t[3] - t[2]) * (2 * kChunkRows + kSympowGroup + 1));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<SympowMma>(args);
  const auto x = values.read(a.x), s = values.read(a.s);
  std::vector<double> y(x.size() / size_t(a.x.size[3]) * size_t(a.s.size[3]));
  for (i32 b = 0; b < a.x.size[0]; ++b)
    for (i32 t = 0; t < a.x.size[1]; ++t)
      for (i32 h = 0; h < a.x.size[2]; ++h) {
        const auto phi = sympow_of(a.power, head_row(x, a.x, b, t, h));
        const auto to = head_row(y, a.y, b, t, h);
        for (size_t n = 0; n < phi.size(); ++n) {
          const auto from = state_row(s, a.s, b, h, t / a.tiles().chunk * a.width() + i32(n));
          for (size_t e = 0; e < to.size(); ++e) to[e] += phi[n] * from[e];
        }
      }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<SympowMma>("sympow_mma",
                                 "y = phi(x) s, phi the symmetric power, s a state for each chunk of rows");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    op.gradient = {{"sympow_mma_backward"}, {"mma_sympow", {{"v", "dy"}, {"s", "ds"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::sympow_mma
