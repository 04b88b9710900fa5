#include "heddle/ops/flash_attention/flash_attention_delta.h"

#include "heddle/ir/rules.h"
#include "heddle/ops/flash_attention/attention_kernel.h"

namespace heddle::flash_attention_delta {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<FlashAttentionDelta>(args);
  require_rank("flash_attention_delta", "y", a.y, 4);
  require_float("flash_attention_delta", "y", a.y);
  const i32* const size = a.y.size;
  require_shape("flash_attention_delta", "dy", a.dy, {size[0], size[1], size[2], size[3]});
  require_float("flash_attention_delta", "dy", a.dy);
  if (a.dlse.rank > 0) {
    require_shape("flash_attention_delta", "dlse", a.dlse, {size[0], size[2], size[1]});
    require_dtype("flash_attention_delta", "dlse", a.dlse, DType::kF32);
  }
  set_output("flash_attention_delta", "delta", a.delta, DType::kF32, {size[0], size[2], size[1]});
}

// Coordinates: batch, first row, row after the last.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<FlashAttentionDelta>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.y.size[0]}, {.extent = a.y.size[1], .preferred = 16}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<FlashAttentionDelta>(args);
  const std::array<i32, 2> batch{t[0], t[0] + 1}, rows{t[1], t[2]};
  for (const Tensor* tensor : {&a.y, &a.dy})
    out.push_back(part_of(*tensor, Access::kRead, {batch, rows, {0, a.y.size[2]}, {0, a.y.last()}}));
  if (a.dlse.exists()) out.push_back(part_of(a.dlse, Access::kRead, {batch, {0, a.y.size[2]}, rows}));
  out.push_back(part_of(a.delta, Access::kWrite, {batch, {0, a.y.size[2]}, rows}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionDelta>(args);
  return 2.0 * (t[2] - t[1]) * a.y.size[2] * a.y.last();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<FlashAttentionDelta>(args);
  const std::vector<double> y = values.read(a.y), dy = values.read(a.dy);
  std::vector<double> delta(size_t(elements(a.delta)));
  const std::vector<double> dlse = a.dlse.exists() ? values.read(a.dlse) : delta;
  const size_t dim = size_t(a.y.last()), heads = size_t(a.y.size[2]), rows = size_t(a.y.size[1]);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t line = i / dim;
    delta[(line / heads / rows * heads + line % heads) * rows + line / heads % rows] += y[i] * dy[i];
  }
  for (size_t i = 0; i < delta.size(); ++i) delta[i] -= dlse[i];
  values.write(a.delta, delta);
}

// Heads of up to 256 elements of 16 bits, in words of 16 bytes.
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<FlashAttentionDelta>(args);
  constexpr i32 kThreads = 256;
  KernelPlan plan{.file = "sm80"};
  if (target.arch < 80) plan.why_not = "it is for compute capability 8.0 and later";
  for (const auto& [name, tensor] : {std::pair{"y", &a.y}, {"dy", &a.dy}})
    if (plan.why_not.empty()) plan.why_not = why_no_boxes(name, *tensor, a.y.dtype);
  if (plan.why_not.empty() && (a.y.last() % 8 != 0 || a.y.last() > 256))
    plan.why_not = fmt::format("heads have {} elements; must be a multiple of 8, at most 256", a.y.last());
  if (!plan.why_not.empty()) return plan;
  i32 lanes = 1;
  while (lanes * 8 < a.y.last()) lanes *= 2;
  const i64 lines = i64(a.y.size[0]) * a.y.size[1] * a.y.size[2], each = kThreads / lanes;
  plan.constants = {{"kernel", 1}, {"lanes", lanes}};
  plan.launches = {{.grid = u32((lines + each - 1) / each), .threads = kThreads}};
  return plan;
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<FlashAttentionDelta>("flash_attention_delta",
                                           "sum of y * dy for each head of each row, less dlse");
    op.infer = infer;
    op.axes = axes;
    op.kernel = kernel;
    op.regions = regions;
    op.flops = flops;
    op.scratch = [](const std::byte* args, const TileCoord&) {
      return i64(4) * as<FlashAttentionDelta>(args).y.size[2];
    };
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::flash_attention_delta
