#include "heddle/ops/experts/expert_sum.h"

#include "heddle/base/integer.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/rules.h"

namespace heddle::expert_sum {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ExpertSum>(args);
  require_rank("expert_sum", "x", a.x, 2);
  require_float("expert_sum", "x", a.x);
  require_rank("expert_sum", "share", a.share, 2);
  require_dtype("expert_sum", "share", a.share, DType::kF32);
  const i64 shares = i64(a.share.size[0]) * a.share.last();
  if (a.place.rank > 0) {
    require_shape("expert_sum", "place", a.place, {a.share.size[0], a.share.last()});
    require_dtype("expert_sum", "place", a.place, DType::kI32);
  }
  require(
      a.place.rank > 0 || a.x.size[0] == shares,
      "[expert_sum] x is {} and share {}; x must have {} rows, one for each share, or there must be places",
      shape_text(a.x), shape_text(a.share), shares);
  set_output("expert_sum", "y", a.y, a.x.dtype, {a.share.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<ExpertSum>(args);
  return {{.dim = "T", .extent = a.share.size[0], .preferred = 16},
          {.dim = "D", .extent = a.x.last(), .preferred = 512}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<ExpertSum>(args);
  const i32 taken = a.share.last();
  if (a.place.exists()) {
    out.push_back(whole(a.x, Access::kRead, true));
    out.push_back(part_of(a.place, Access::kRead, {{t[0], t[1]}, {0, taken}}));
  } else {
    out.push_back(part_of(a.x, Access::kRead, {{t[0] * taken, t[1] * taken}, {t[2], t[3]}}));
  }
  out.push_back(part_of(a.share, Access::kRead, {{t[0], t[1]}, {0, taken}}));
  out.push_back(part_of(a.y, Access::kWrite, {{t[0], t[1]}, {t[2], t[3]}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  return 2.0 * as<ExpertSum>(args).share.last() * (t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ExpertSum>(args);
  const auto x = values.read(a.x), share = values.read(a.share);
  const size_t columns = size_t(a.x.last()), taken = size_t(a.share.last());
  const auto place = a.place.exists() ? values.read(a.place) : std::vector<double>{};
  std::vector<double> y(share.size() / taken * columns);
  for (size_t n = 0; n < share.size(); ++n) {
    if (a.place.exists() && place[n] < 0) continue;
    const size_t row = a.place.exists() ? size_t(place[n]) : n;
    for (size_t i = 0; i < columns; ++i) y[n / taken * columns + i] += share[n] * x[row * columns + i];
  }
  values.write(a.y, y);
}

// The reason why rows are not added a word of 16 bytes at a time, or "".
std::string why_not(const ExpertSum& a, const KernelTarget& target) {
  constexpr i32 kWord = 8, kFirstArch = 80, kMostTaken = 32;
  if (target.arch < kFirstArch) return "it is written for compute capability 8.0 and later";
  if (a.share.last() > kMostTaken)
    return fmt::format("a token has {} experts; must be at most {}", a.share.last(), kMostTaken);
  if (a.x.dtype != a.y.dtype) return fmt::format("y is {} and x {}", name(a.y.dtype), name(a.x.dtype));
  for (const auto& [argument, tensor] : {std::pair("x", &a.x), std::pair("y", &a.y)})
    if (tensor->last() % kWord != 0 || tensor->stride[0] % kWord != 0)
      return fmt::format("{} has rows of {} elements, {} apart; must be multiples of {}", argument,
                         tensor->last(), tensor->stride[0], kWord);
  return {};
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  constexpr i32 kThreads = 256;
  const auto& a = as<ExpertSum>(args);
  KernelPlan plan{.why_not = why_not(a, target), .file = "sm80"};
  if (!plan.why_not.empty()) return plan;
  plan.constants = {{"taken", a.share.last()}, {"placed", i64(a.place.rank > 0)}};
  plan.launches = {{.grid = u32(ceil_div(a.share.size[0], kThreads / 32)), .threads = kThreads}};
  return plan;
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ExpertSum>("expert_sum", "y = the outputs of a token's experts, each by its share");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "y"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::expert_sum
