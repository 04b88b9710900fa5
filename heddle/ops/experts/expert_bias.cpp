#include "heddle/ops/experts/expert_bias.h"

#include "heddle/ir/rules.h"

namespace heddle::expert_bias {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ExpertBias>(args);
  require_record("expert_bias", "step", a.step);
  require_rank("expert_bias", "choice", a.choice, 2);
  require_dtype("expert_bias", "choice", a.choice, DType::kI32);
  require_rank("expert_bias", "x", a.x, 2);
  require_float("expert_bias", "x", a.x);
  require_rank("expert_bias", "bias", a.bias, 1);
  require_float("expert_bias", "bias", a.bias);
  const i64 entries = i64(a.choice.size[0]) * a.choice.last();
  require(a.x.size[0] == entries,
          "[expert_bias] x is {} and choice {}; x must have {} rows, one for each choice", shape_text(a.x),
          shape_text(a.choice), entries);
  require(a.bias.last() % a.x.last() == 0,
          "[expert_bias] bias is {}, x is {}; it must be a multiple of its columns", shape_text(a.bias),
          shape_text(a.x));
  set_output("expert_bias", "y", a.y, a.x.dtype, {a.x.size[0], a.x.last()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<ExpertBias>(args);
  return {{.dim = "T", .extent = a.choice.size[0], .preferred = 16},
          {.dim = "D", .extent = a.x.last(), .preferred = 512}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<ExpertBias>(args);
  const i32 taken = a.choice.last();
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(part_of(a.choice, Access::kRead, {{t[0], t[1]}, {0, taken}}));
  out.push_back(part_of(a.x, Access::kRead, {{t[0] * taken, t[1] * taken}, {t[2], t[3]}}));
  out.push_back(whole(a.bias, Access::kRead));
  out.push_back(part_of(a.y, Access::kWrite, {{t[0] * taken, t[1] * taken}, {t[2], t[3]}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  return double(as<ExpertBias>(args).choice.last()) * (t[1] - t[0]) * (t[3] - t[2]);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<ExpertBias>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto choice = values.read(a.choice), x = values.read(a.x), bias = values.read(a.bias);
  auto y = values.read(a.y);
  const size_t columns = size_t(a.x.last());
  for (size_t entry = 0; entry < size_t(host.rows * a.choice.last()); ++entry)
    for (size_t i = 0; i < columns; ++i)
      y[entry * columns + i] = x[entry * columns + i] + bias[size_t(choice[entry]) * columns + i];
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ExpertBias>("expert_bias", "y = x + the bias of the expert each row chose");
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

}  // namespace heddle::expert_bias
