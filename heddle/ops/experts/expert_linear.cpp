#include "heddle/ops/experts/expert_linear.h"

#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::expert_linear {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<ExpertLinear>(args);
  require_record("expert_linear", "step", a.step);
  require_rank("expert_linear", "choice", a.choice, 2);
  require_dtype("expert_linear", "choice", a.choice, DType::kI32);
  require_rank("expert_linear", "x", a.x, 2);
  require_float("expert_linear", "x", a.x);
  require(a.w.matrices >= a.choice.last(), "[expert_linear] w has {} experts; a token takes {}", a.w.matrices,
          a.choice.last());
  require_weight("expert_linear", "w", a.w, a.w.matrices);
  require(a.x.size[0] == a.choice.size[0] || a.x.size[0] == a.entries(),
          "[expert_linear] x is {} and choice {}; x must have a row for each of {} tokens or {} entries",
          shape_text(a.x), shape_text(a.choice), a.choice.size[0], a.entries());
  require(a.x.last() == a.w.cols(), "[expert_linear] x is {}, w is {}; the last sizes must be equal",
          shape_text(a.x), shape_text(a.w.data));
  set_output("expert_linear", "y", a.y, a.x.dtype, {a.entries(), a.w.rows()});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<ExpertLinear>(args);
  const i32 rows = a.slot_rows();
  return {{.extent = a.slots() * rows, .unit = rows, .preferred = rows},
          {.dim = "N", .extent = a.w.rows(), .unit = a.w.panel_rows, .preferred = 512}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<ExpertLinear>(args);
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(whole(a.choice, Access::kRead));
  out.push_back(whole(a.x, Access::kRead, true));
  out.push_back(rows_of_panels(a.w, t[2], t[3]));
  out.push_back(whole(a.y, Access::kWrite, true));
}

// As if each slot had the same part of the entries.
double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<ExpertLinear>(args);
  return 2.0 * a.entries() / a.slots() * (t[3] - t[2]) * a.w.cols();
}

// The panels of one expert.
double stream_bytes(const std::byte* args, const TileCoord& t) {
  const auto& a = as<ExpertLinear>(args);
  return double(t[3] - t[2]) / a.w.panel_rows * a.w.slices() * double(a.w.panel_bytes());
}

// Entries past the live rows keep what they had.
void reference(const std::byte* args, Values& values) {
  const auto& a = as<ExpertLinear>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto choice = values.read(a.choice), x = values.read(a.x), w = values.read(a.w);
  auto y = values.read(a.y);
  const size_t n = size_t(a.w.rows()), k = size_t(a.w.cols());
  for (size_t entry = 0; entry < size_t(host.rows * a.choice.last()); ++entry) {
    const double* row = &x[entry / size_t(a.entries_per_row()) * k];
    for (size_t c = 0; c < n; ++c) {
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += row[i] * w[(size_t(choice[entry]) * n + c) * k + i];
      y[entry * n + c] = sum;
    }
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<ExpertLinear>("expert_linear",
                                    "y = x w^T, w that of the expert each row chose; takes epilogues");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.stream_bytes = stream_bytes;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.main = true, .scatters = true, .streams_by_data = true, .output = "y"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::expert_linear
