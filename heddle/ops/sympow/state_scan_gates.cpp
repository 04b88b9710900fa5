#include "heddle/ops/sympow/state_scan_gates.h"

#include "heddle/ops/sympow/state_scan_reference.h"

namespace heddle::state_scan_gates {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<StateScanGates>(args);
  require_rank("state_scan_gates", "l", a.l, 3);
  require_rank("state_scan_gates", "part", a.part, 4);
  require(a.chunk >= 0, "[state_scan_gates] chunk = {}; must be a number of positions, or 0 for all",
          a.chunk);
  require_shape("state_scan_gates", "part", a.part,
                {a.l.size[0], a.l.size[2], a.tiles().chunks(), a.part.size[3]});
  set_output("state_scan_gates", "dl", a.dl, DType::kF32, {a.l.size[0], a.l.size[1], a.l.size[2]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<StateScanGates>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.l.size[0] * a.l.size[2]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.tiles().chunks()}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<StateScanGates>(args);
  const HeadRegions add(a.l, t, out);
  const i32 begin = a.tiles().chunk_begin(t[1]), end = a.tiles().chunk_end(t[1]);
  const i32 b = t[0] / a.l.size[2], h = t[0] % a.l.size[2];
  add.add(a.l, Access::kRead, end - 1, end);
  add.add(a.dl, Access::kWrite, begin, end);
  out.push_back(
      part_of(a.part, Access::kRead, {{b, b + 1}, {h, h + 1}, {t[1], t[1] + 1}, {0, a.part.size[3]}}));
}

double flops(const std::byte* args, const TileCoord&) {
  return as<StateScanGates>(args).part.size[3];
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<StateScanGates>(args);
  const auto part = values.read(a.part);
  const ChunkDecays decays(a.l, a.chunk, values);
  std::vector<double> dl(size_t(elements(a.l)));
  for (i32 b = 0; b < a.l.size[0]; ++b)
    for (i32 h = 0; h < a.l.size[2]; ++h)
      for (i32 g = 0; g < a.tiles().chunks(); ++g) {
        const auto parts = state_row(part, a.part, b, h, g);
        dl[decays.end(b, h, g)] = decays.at(b, h, g) * std::accumulate(parts.begin(), parts.end(), 0.0);
      }
  values.write(a.dl, dl);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<StateScanGates>("state_scan_gates", "dl of state_scan, at the ends of chunks");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::state_scan_gates
