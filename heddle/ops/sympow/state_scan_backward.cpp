#include "heddle/ops/sympow/state_scan_backward.h"

#include "heddle/ops/sympow/state_scan_reference.h"

namespace heddle::state_scan_backward {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<StateScanBackward>(args);
  const char* const op = "state_scan_backward";
  require_scan(op, "s", a, a.s);
  const auto* size = a.s.size;
  const i32 width = a.width();
  require_shape(op, "ds", a.ds, {size[0], size[1], size[2], size[3]});
  require_float(op, "ds", a.ds);
  require_shape(op, "dlast", a.dlast, {size[0], size[1], width, size[3]});
  set_output(op, "du", a.du, a.s.dtype, {size[0], size[1], size[2], size[3]});
  set_output(op, "ds0", a.ds0, DType::kF32, {size[0], size[1], width, size[3]});
  set_output(op, "part", a.part, DType::kF32, {size[0], size[1], a.chunks, state_parts(width)});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<StateScanBackward>(args);
  return state_axes(a.s, a.width());
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<StateScanBackward>(args);
  const StateRegions regions(a.s, a.width(), t, out);
  for (const Tensor* read : {&a.s, &a.ds, &a.dlast}) regions.add(*read, Access::kRead);
  for (const Tensor* made : {&a.du, &a.ds0}) regions.add(*made, Access::kWrite);
  regions.add_part(a.part);
  regions.add_gates(a.l);
}

double flops(const std::byte* args, const TileCoord&) {
  const auto& a = as<StateScanBackward>(args);
  return 4.0 * kStateRows * a.chunks * a.s.size[3];
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<StateScanBackward>(args);
  return i64(4) * (a.chunks + kStateRows * (a.s.size[3] + 1));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<StateScanBackward>(args);
  const auto s = values.read(a.s), ds = values.read(a.ds), dlast = values.read(a.dlast);
  const ChunkDecays decays(a.l, a.chunk, values);
  std::vector<double> du(s.size()), ds0(dlast.size()), part(size_t(elements(a.part)));
  const size_t columns = size_t(a.s.size[3]), state = size_t(a.width()) * columns;
  for (i32 b = 0; b < a.s.size[0]; ++b)
    for (i32 h = 0; h < a.s.size[1]; ++h) {
      const size_t head = size_t(b) * size_t(a.s.size[1]) + size_t(h);
      for (size_t i = 0; i < state; ++i) {
        double given = dlast[head * state + i];
        for (i32 g = a.chunks - 1; g >= 0; --g) {
          const size_t chunk = head * size_t(a.chunks) + size_t(g), at = chunk * state + i;
          du[at] = given;
          part[chunk * size_t(a.part.size[3]) + i / columns / kStateRows] += s[at] * given;
          given = ds[at] + decays.at(b, h, g) * given;
        }
        ds0[head * state + i] = given;
      }
    }
  values.write(a.du, du);
  values.write(a.ds0, ds0);
  values.write(a.part, part);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<StateScanBackward>("state_scan_backward",
                                         "du and ds0 of state_scan, and parts of the decays' gradients");
    op.infer = infer;
    op.kernel = kernel;
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

}  // namespace heddle::state_scan_backward
