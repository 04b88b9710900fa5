#include "heddle/ops/rope/rope.h"

#include "heddle/ops/rope/turned_heads.h"

namespace heddle::rope {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Rope>(args);
  infer_turned_heads("rope", "q", a.q, a.cos, a.sin);
  set_output("rope", "y", a.y, a.q.dtype, {a.q.size[0], a.q.size[1], a.q.size[2], a.q.size[3]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return turned_heads_axes(as<Rope>(args).q, target);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<Rope>(args);
  turned_heads_regions(a.q, a.cos, a.sin, a.y, t, out);
}

double flops(const std::byte* args, const TileCoord& t) {
  return turned_heads_flops(as<Rope>(args).q, t);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Rope>(args);
  const auto x = values.read(a.q), cos = values.read(a.cos), sin = values.read(a.sin);
  auto y = x;
  each_turned_pair(a.q, a.cos, a.interleaved, [&](size_t first, size_t second, size_t angle, size_t other) {
    y[first] = x[first] * cos[angle] - x[second] * sin[angle];
    y[second] = x[second] * cos[other] + x[first] * sin[other];
  });
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Rope>("rope", "y = heads q with their pairs of elements turned by cos and sin");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "q", .output = "y", .in_place = true};
    op.gradient = {{"rope_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::rope
