#include "heddle/ops/gather_rows/gather_rows.h"

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle::gather_rows {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<GatherRows>(args);
  require_record("gather_rows", "step", a.step);
  require_rank("gather_rows", "x", a.x, 2);
  require_float("gather_rows", "x", a.x);
  require(a.y.rank == 2, "[gather_rows] y has {} dimensions; give it its dtype and shape [wanted rows, {}]",
          a.y.rank, a.x.last());
  set_output("gather_rows", "y", a.y, a.x.dtype, {a.y.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<GatherRows>(args).y.size[0]);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<GatherRows>(args);
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.x, Access::kRead, true));
  out.push_back(part_of(a.y, Access::kWrite, {{t[0], t[1]}, {0, a.y.last()}}));
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<GatherRows>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  auto x = values.read(a.x), y = values.read(a.y);
  const i64 columns = a.x.last();
  for (i64 n = 0; n < i64(y.size()); ++n)
    y[size_t(n)] = x[size_t(host.wanted_rows()[n / columns] * columns + n % columns)];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<GatherRows>("gather_rows", "y = the rows of x whose logits are wanted");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = rowwise_flops<GatherRows, 0>;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "y"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::gather_rows
