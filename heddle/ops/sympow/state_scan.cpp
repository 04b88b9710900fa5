#include "heddle/ops/sympow/state_scan.h"

#include "heddle/ops/sympow/state_scan_reference.h"

namespace heddle::state_scan {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<StateScan>(args);
  require_scan("state_scan", "u", a, a.u);
  const auto* size = a.u.size;
  if (a.s0.rank > 0) require_shape("state_scan", "s0", a.s0, {size[0], size[1], a.width(), size[3]});
  set_output("state_scan", "s", a.s, a.u.dtype, {size[0], size[1], size[2], size[3]});
  set_output("state_scan", "last", a.last, DType::kF32, {size[0], size[1], a.width(), size[3]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<StateScan>(args);
  return state_axes(a.u, a.width());
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<StateScan>(args);
  const StateRegions regions(a.u, a.width(), t, out);
  for (const Tensor* read : {&a.u, &a.s0}) regions.add(*read, Access::kRead);
  for (const Tensor* made : {&a.s, &a.last}) regions.add(*made, Access::kWrite);
  regions.add_gates(a.l);
}

double flops(const std::byte* args, const TileCoord&) {
  const auto& a = as<StateScan>(args);
  return 2.0 * kStateRows * a.chunks * a.u.size[3];
}

i64 scratch(const std::byte* args, const TileCoord&) {
  return i64(4) * as<StateScan>(args).chunks;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<StateScan>(args);
  const auto u = values.read(a.u);
  const auto s0 = a.s0.rank > 0 ? values.read(a.s0) : std::vector<double>{};
  const ChunkDecays decays(a.l, a.chunk, values);
  std::vector<double> s(u.size()), last(size_t(elements(a.last)));
  const size_t state = size_t(a.width()) * size_t(a.u.size[3]);
  for (i32 b = 0; b < a.u.size[0]; ++b)
    for (i32 h = 0; h < a.u.size[1]; ++h) {
      const size_t head = size_t(b) * size_t(a.u.size[1]) + size_t(h);
      for (size_t i = 0; i < state; ++i) {
        double sum = s0.empty() ? 0 : s0[head * state + i];
        for (i32 g = 0; g < a.chunks; ++g) {
          const size_t at = (head * size_t(a.chunks) + size_t(g)) * state + i;
          s[at] = sum;
          sum = sum * decays.at(b, h, g) + u[at];
        }
        last[head * state + i] = sum;
      }
    }
  values.write(a.s, s);
  values.write(a.last, last);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<StateScan>("state_scan",
                                 "the state before each chunk, from what each chunk adds and its decay");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.gradient = {{"state_scan_backward"}, {"state_scan_gates"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::state_scan
