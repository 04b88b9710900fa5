#include "heddle/ops/rope/rope_backward.h"

#include "heddle/ops/rope/turned_heads.h"

namespace heddle::rope_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<RopeBackward>(args);
  infer_turned_heads("rope_backward", "dy", a.dy, a.cos, a.sin);
  const i32* const size = a.dy.size;
  set_output("rope_backward", "dq", a.dq, a.dy.dtype, {size[0], size[1], size[2], size[3]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget& target) {
  return turned_heads_axes(as<RopeBackward>(args).dy, target);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<RopeBackward>(args);
  turned_heads_regions(a.dy, a.cos, a.sin, a.dq, t, out);
}

double flops(const std::byte* args, const TileCoord& t) {
  return turned_heads_flops(as<RopeBackward>(args).dy, t);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<RopeBackward>(args);
  const auto dy = values.read(a.dy), cos = values.read(a.cos), sin = values.read(a.sin);
  auto dq = dy;
  each_turned_pair(a.dy, a.cos, a.interleaved, [&](size_t first, size_t second, size_t angle, size_t other) {
    dq[first] = dy[first] * cos[angle] + dy[second] * sin[other];
    dq[second] = dy[second] * cos[other] - dy[first] * sin[angle];
  });
  values.write(a.dq, dq);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<RopeBackward>("rope_backward", "dq = dy with its pairs of elements turned back by cos and sin");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.input = "dy", .output = "dq", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::rope_backward
