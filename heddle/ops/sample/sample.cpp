#include "heddle/ops/sample/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/ir/rules.h"
#include "heddle/ops/sample/sample_reference.h"

namespace heddle::sample {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Sample>(args);
  require_record("sample", "step", a.step);
  require_rank("sample", "logits", a.logits, 2);
  require_dtype("sample", "logits", a.logits, DType::kF32);
  require(a.logits.last() < 1 << 24, "[sample] logits is {}; at most 2^24 tokens can be told apart in f32",
          shape_text(a.logits));
  require_record("sample", "state", a.state);
  require_rank("sample", "edits", a.edits, 3);
  require_dtype("sample", "edits", a.edits, DType::kF32);
  require_shape("sample", "edits", a.edits, {a.edits.size[0], ScoreEdits::kPlanes, a.logits.last()});
  require_rank("sample", "masks", a.masks, 2);
  require_dtype("sample", "masks", a.masks, DType::kU8);
  require_shape("sample", "masks", a.masks, {a.edits.size[0], ScoreEdits::mask_bytes(a.logits.last())});
  if (a.best.rank == 0) return;
  const i32 rows = a.logits.size[0], slices = ScoreSlices::number(a.logits.last());
  require_shape("sample", "best", a.best, {rows, slices, ScoreSlices::kParts});
  require_shape("sample", "sorted", a.sorted, {rows, slices, ScoreSlices::kSize});
  require_shape("sample", "blocks", a.blocks, {rows, slices, ScoreSlices::kPlanes, ScoreSlices::kBlocks});
  for (const Tensor* part : {&a.best, &a.sorted, &a.blocks})
    require_dtype("sample", "parts", *part, DType::kF32);
}

// One tile: what it writes for one sequence and reads for another lies in one record.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return row_axes(as<Sample>(args).logits.size[0], 0);
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<Sample>(args);
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(part_of(a.logits, Access::kRead, {{t[0], t[1]}, {0, a.logits.last()}}));
  out.push_back(whole(a.state, Access::kRead));
  if (a.best.exists()) {
    out.push_back(part_of(a.best, Access::kRead, {{t[0], t[1]}, {0, a.best.size[1]}, {0, a.best.last()}}));
    out.push_back(
        part_of(a.sorted, Access::kRead, {{t[0], t[1]}, {0, a.sorted.size[1]}, {0, a.sorted.last()}}));
    out.push_back(
        part_of(a.blocks, Access::kRead,
                {{t[0], t[1]}, {0, a.blocks.size[1]}, {0, a.blocks.size[2]}, {0, a.blocks.last()}}));
  }
  out.push_back(whole(a.edits, Access::kRead, true));
  out.push_back(whole(a.masks, Access::kRead, true));
  out.push_back(whole(a.state, Access::kWrite));
  out.push_back(whole(a.edits, Access::kWrite));
}

double flops(const std::byte* args, const TileCoord& t) {
  return 40.0 * (t[1] - t[0]) * as<Sample>(args).logits.last();
}

// The tokens that are left, by descending score, as transformers' processors leave them; ties with the last one
// kept stay.
struct Candidates {
  std::vector<double> scores;
  std::vector<size_t> order;

  void keep(size_t count) {
    while (count < order.size() && scores[order[count]] == scores[order[count - 1]]) ++count;
    order.resize(std::min(count, order.size()));
  }
  double weight(size_t token) const { return std::exp(scores[token] - scores[order[0]]); }
  double total() const {
    double sum = 0;
    for (size_t token : order) sum += weight(token);
    return sum;
  }
};

size_t choose(std::vector<double> scores, const StepSequence& options, u32 draw) {
  if (options.temperature > 0)
    for (double& score : scores) score /= double(options.temperature);
  Candidates left{scores, std::vector<size_t>(scores.size())};
  std::iota(left.order.begin(), left.order.end(), size_t{0});
  std::stable_sort(left.order.begin(), left.order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (options.temperature <= 0) return left.order[0];
  if (options.top_k > 0) left.keep(size_t(options.top_k));
  if (options.top_p < 1) {
    double before = 0;
    size_t count = 0;
    const double limit = double(options.top_p) * left.total();
    while (count < left.order.size() && before < limit) before += left.weight(left.order[count++]);
    left.keep(count);
  }
  std::erase_if(left.order, [&](size_t token) { return left.weight(token) < double(options.min_p); });
  double wanted = left.total() * double(uniform_draw(options.seed, draw));
  std::vector<size_t> by_token = left.order;
  std::sort(by_token.begin(), by_token.end());
  for (size_t token : by_token) {
    wanted -= left.weight(token);
    if (wanted < 0) return token;
  }
  return by_token.back();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Sample>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  auto& device = *reinterpret_cast<StepDevice*>(values.bytes(a.state.buffer));
  const auto logits = values.read(a.logits);
  auto edits = values.read(a.edits);
  ++device.steps;
  for (i32 m = 0; m < host.wanted; ++m) {
    const i32 row = host.wanted_rows()[m], s = host.row_sequence()[row];
    const StepSequence& options = *host.sequence(s);
    if (row != options.row_begin + options.row_count - 1) continue;
    const auto vocab = size_t(a.logits.last());
    auto scores = edited_scores(std::span(logits).subspan(size_t(m) * vocab, vocab), host, device, s, edits,
                                values.bytes(a.masks.buffer));
    const u32 draw = device.draws()[s]++;
    const bool none = std::ranges::any_of(scores, [](double score) { return !(score < INFINITY); }) ||
                      *std::ranges::max_element(scores) == -INFINITY;
    const i32 token = none ? StepArrays::kNoToken : i32(choose(std::move(scores), options, draw));
    device.sampled()[s] = device.history(s)[draw % u32(StepDevice::kHistory)] = token;
    if (device.shape.vocab > 0 && !none) device.seen(s)[token / 32] |= 1u << (token % 32);
    if ((options.edited & ScoreEdits::kByPlanes) != 0 && !none) {
      const size_t slot = size_t(options.slot) * ScoreEdits::kPlanes + ScoreEdits::kCount;
      double& count = edits[slot * vocab + size_t(token)];
      count = std::max(count, 0.0) + 1;
    }
    if (options.row_count != 1) continue;
    device.token()[row] = std::max(token, 0);
    ++device.position()[row];
    ++device.start()[s];
  }
  values.write(a.edits, edits);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Sample>("sample", "chooses each sequence's next token and moves the state on");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "state"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::sample
