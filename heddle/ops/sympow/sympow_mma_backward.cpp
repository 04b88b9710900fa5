#include "heddle/ops/sympow/sympow_mma_backward.h"

#include <algorithm>
#include <numeric>

#include "heddle/ops/sympow/sympow_reference.h"

namespace heddle::sympow_mma_backward {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<SympowMmaBackward>(args);
  require_rank("sympow_mma_backward", "x", a.x, 4);
  require_rank("sympow_mma_backward", "dy", a.dy, 4);
  require_heads("sympow_mma_backward", "x", a.x, a.x, a.x.size[3]);
  require_heads("sympow_mma_backward", "dy", a.dy, a.x, a.dy.size[3]);
  require_power("sympow_mma_backward", "x", a.power, a.x.size[3]);
  require_states("sympow_mma_backward", "s", a.s, a.x, a.tiles(), a.width(), a.dy.size[3]);
  set_output("sympow_mma_backward", "dx", a.dx, a.x.dtype,
             {a.x.size[0], a.x.size[1], a.x.size[2], a.x.size[3]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<SympowMmaBackward>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.x.size[0] * a.x.size[2]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.tiles().tiles()}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<SympowMmaBackward>(args);
  const ChunkTiles tiles = a.tiles();
  const i32 b = t[0] / a.x.size[2], h = t[0] % a.x.size[2], s = tiles.chunk_of(t[1]) * a.width();
  const std::array<i32, 2> rows = {tiles.begin(t[1]), tiles.end(t[1])};
  const auto rows_of = [&](const Tensor& tensor, Access access) {
    out.push_back(part_of(tensor, access, {{b, b + 1}, rows, {h, h + 1}, {0, tensor.size[3]}}));
  };
  rows_of(a.x, Access::kRead);
  rows_of(a.dy, Access::kRead);
  rows_of(a.dx, Access::kWrite);
  out.push_back(part_of(a.s, Access::kRead, {{b, b + 1}, {h, h + 1}, {s, s + a.width()}, {0, a.s.size[3]}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<SympowMmaBackward>(args);
  return 2.0 * (a.tiles().end(t[1]) - a.tiles().begin(t[1])) * a.width() * (a.dy.size[3] + 2);
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<SympowMmaBackward>(args);
  return i64(4) * kChunkRows * (2 * a.x.size[3] + kSympowGroup + 2 * a.dy.size[3] + 1);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<SympowMmaBackward>(args);
  const auto x = values.read(a.x), s = values.read(a.s), dy = values.read(a.dy);
  std::vector<double> dx(x.size()), dphi(size_t(a.width()));
  for (i32 b = 0; b < a.x.size[0]; ++b)
    for (i32 t = 0; t < a.x.size[1]; ++t)
      for (i32 h = 0; h < a.x.size[2]; ++h) {
        const auto given = head_row(dy, a.dy, b, t, h);
        for (size_t n = 0; n < dphi.size(); ++n) {
          const auto row = state_row(s, a.s, b, h, t / a.tiles().chunk * a.width() + i32(n));
          dphi[n] = std::inner_product(row.begin(), row.end(), given.begin(), 0.0);
        }
        const auto made = sympow_gradient(a.power, head_row(x, a.x, b, t, h), dphi);
        std::ranges::copy(made, head_row(dx, a.dx, b, t, h).begin());
      }
  values.write(a.dx, dx);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<SympowMmaBackward>(
        "sympow_mma_backward", "dx = J' (s dy), J the Jacobian of the symmetric power at each row of x");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::sympow_mma_backward
