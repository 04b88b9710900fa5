#include "heddle/ops/sympow/chunk_sum_backward.h"

#include <algorithm>

#include "heddle/ops/sympow/power_attention_reference.h"

namespace heddle::chunk_sum_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ChunkSumBackward>(args);
  require_rank("chunk_sum_backward", "dy", a.dy, 3);
  require_dtype("chunk_sum_backward", "dy", a.dy, DType::kF32);
  require(a.chunk >= 0, "[chunk_sum_backward] chunk = {}; must be a number of positions, or 0 for all",
          a.chunk);
  set_output("chunk_sum_backward", "dx", a.dx, DType::kF32, {a.dy.size[0], a.dy.size[1], a.dy.size[2]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<ChunkSumBackward>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.dy.size[0] * a.dy.size[2]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.tiles().chunks()}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<ChunkSumBackward>(args);
  const HeadRegions add(a.dy, t, out);
  const i32 begin = a.tiles().chunk_begin(t[1]), end = a.tiles().chunk_end(t[1]);
  add.add(a.dy, Access::kRead, begin, end);
  add.add(a.dx, Access::kWrite, begin, end);
}

double flops(const std::byte* args, const TileCoord&) {
  return as<ChunkSumBackward>(args).tiles().chunk;
}

i64 scratch(const std::byte* args, const TileCoord&) {
  return i64(8) * std::min(kRun, as<ChunkSumBackward>(args).tiles().chunk);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ChunkSumBackward>(args);
  const auto given = values.read(a.dy);
  std::vector<double> sums(given.size());
  const auto at = [&](i32 b, i32 t, i32 h) {
    return (size_t(b) * size_t(a.dy.size[1]) + size_t(t)) * size_t(a.dy.size[2]) + size_t(h);
  };
  for (i32 b = 0; b < a.dy.size[0]; ++b)
    for (i32 h = 0; h < a.dy.size[2]; ++h)
      for (i32 c = 0; c < a.tiles().chunks(); ++c) {
        double sum = 0;
        for (i32 t = a.tiles().chunk_end(c) - 1; t >= a.tiles().chunk_begin(c); --t)
          sums[at(b, t, h)] = sum += given[at(b, t, h)];
      }
  values.write(a.dx, sums);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ChunkSumBackward>("chunk_sum_backward",
                                        "sums of dy from each position to the end of its chunk");
    op.infer = infer;
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

}  // namespace heddle::chunk_sum_backward
