#include "heddle/ops/sympow/mma_sympow.h"

#include <algorithm>

#include "heddle/ops/sympow/sympow_reference.h"

namespace heddle::mma_sympow {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

constexpr i32 kColumns = 64, kGroups = 4;  // a tile has so many at most

void infer(std::byte* args) {
  auto& a = as<MmaSympow>(args);
  require_rank("mma_sympow", "x", a.x, 4);
  require_rank("mma_sympow", "v", a.v, 4);
  require_heads("mma_sympow", "x", a.x, a.x, a.x.size[3]);
  require_heads("mma_sympow", "v", a.v, a.x, a.v.size[3]);
  const i32 width = require_power("mma_sympow", "x", a.power, a.x.size[3]);
  const i32 rows = state_rows("mma_sympow", a.tiles(), width);
  set_output("mma_sympow", "s", a.s, a.x.dtype, {a.x.size[0], a.x.size[2], rows, a.v.size[3]});
}

// Chunks of one head after the other, each in parts of kGroups groups.
i32 parts(const MmaSympow& a) {
  return (a.width() / kSympowGroup + kGroups - 1) / kGroups;
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<MmaSympow>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.x.size[0] * a.x.size[2]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.tiles().chunks() * parts(a)},
          {.dim = "E", .extent = a.v.size[3], .unit = 8, .preferred = kColumns}};
}

struct Place {
  i32 b, h;
  std::array<i32, 2> times, rows;  // rows of the state
};

Place place_of(const MmaSympow& a, const TileCoord& t) {
  const i32 chunk = t[1] / parts(a), first = t[1] % parts(a) * kGroups * kSympowGroup;
  const i32 last = std::min(first + kGroups * kSympowGroup, a.width()), begin = chunk * a.width();
  return {t[0] / a.x.size[2],
          t[0] % a.x.size[2],
          {a.tiles().chunk_begin(chunk), a.tiles().chunk_end(chunk)},
          {begin + first, begin + last}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<MmaSympow>(args);
  const auto& [b, h, times, rows] = place_of(a, t);
  out.push_back(part_of(a.x, Access::kRead, {{b, b + 1}, times, {h, h + 1}, {0, a.x.size[3]}}));
  out.push_back(part_of(a.v, Access::kRead, {{b, b + 1}, times, {h, h + 1}, {t[2], t[3]}}));
  out.push_back(part_of(a.s, Access::kWrite, {{b, b + 1}, {h, h + 1}, rows, {t[2], t[3]}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const Place place = place_of(as<MmaSympow>(args), t);
  return 2.0 * (place.times[1] - place.times[0]) * (place.rows[1] - place.rows[0]) * (t[3] - t[2]);
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const i64 columns = t[3] - t[2];
  return 4 * ((kGroups + 1) * kSympowGroup * columns + columns * (kChunkRows + 1) +
              (kSympowGroup + as<MmaSympow>(args).x.size[3]) * i64(kChunkRows));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<MmaSympow>(args);
  const auto x = values.read(a.x), v = values.read(a.v);
  std::vector<double> s(size_t(elements(a.s)));
  for (i32 b = 0; b < a.x.size[0]; ++b)
    for (i32 t = 0; t < a.x.size[1]; ++t)
      for (i32 h = 0; h < a.x.size[2]; ++h) {
        const auto phi = sympow_of(a.power, head_row(x, a.x, b, t, h));
        const auto from = head_row(v, a.v, b, t, h);
        for (size_t n = 0; n < phi.size(); ++n) {
          const auto to = state_row(s, a.s, b, h, t / a.tiles().chunk * a.width() + i32(n));
          for (size_t e = 0; e < to.size(); ++e) to[e] += phi[n] * from[e];
        }
      }
  values.write(a.s, s);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<MmaSympow>("mma_sympow", "s = phi(x)' v for each chunk of rows, phi the symmetric power");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    op.gradient = {{"sympow_mma_backward", {{"s", "ds"}, {"dy", "v"}}},
                   {"sympow_mma", {{"s", "ds"}, {"y", "dv"}}}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::mma_sympow
