#include "heddle/ops/experts/expert_sum.h"

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
  require(a.x.size[0] == shares, "[expert_sum] x is {} and share {}; x must have {} rows, one for each share",
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
  out.push_back(part_of(a.x, Access::kRead, {{t[0] * taken, t[1] * taken}, {t[2], t[3]}}));
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
  std::vector<double> y(share.size() / taken * columns);
  for (size_t row = 0; row < share.size(); ++row)
    for (size_t i = 0; i < columns; ++i) y[row / taken * columns + i] += share[row] * x[row * columns + i];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ExpertSum>("expert_sum", "y = the outputs of a token's experts, each by its share");
    op.infer = infer;
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
