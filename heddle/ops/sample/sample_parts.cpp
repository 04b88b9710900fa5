#include "heddle/ops/sample/sample_parts.h"

#include <algorithm>

#include "heddle/ir/rules.h"
#include "heddle/ops/sample/sample_reference.h"

namespace heddle::sample_parts {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<SampleParts>(args);
  require_record("sample_parts", "step", a.step);
  require_rank("sample_parts", "logits", a.logits, 2);
  require_dtype("sample_parts", "logits", a.logits, DType::kF32);
  require_record("sample_parts", "state", a.state);
  require_rank("sample_parts", "edits", a.edits, 3);
  require_dtype("sample_parts", "edits", a.edits, DType::kF32);
  require_shape("sample_parts", "edits", a.edits, {a.edits.size[0], ScoreEdits::kPlanes, a.logits.last()});
  require_rank("sample_parts", "masks", a.masks, 2);
  require_dtype("sample_parts", "masks", a.masks, DType::kU8);
  require_shape("sample_parts", "masks", a.masks, {a.edits.size[0], ScoreEdits::mask_bytes(a.logits.last())});
  const i32 rows = a.logits.size[0], slices = ScoreSlices::number(a.logits.last());
  set_output("sample_parts", "best", a.best, DType::kF32, {rows, slices, ScoreSlices::kParts});
  set_output("sample_parts", "sorted", a.sorted, DType::kF32, {rows, slices, ScoreSlices::kSize});
  set_output("sample_parts", "blocks", a.blocks, DType::kF32,
             {rows, slices, ScoreSlices::kPlanes, ScoreSlices::kBlocks});
  for (const Tensor* made : {&a.best, &a.sorted, &a.blocks})
    require_dtype("sample_parts", "parts", *made, DType::kF32);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<SampleParts>(args);
  return {{.dim = "M", .extent = a.logits.size[0]}, {.dim = "S", .extent = a.best.size[1], .preferred = 1}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<SampleParts>(args);
  out.push_back(whole(a.step, Access::kRead));
  out.push_back(part_of(
      a.logits, Access::kRead,
      {{t[0], t[1]}, {t[2] * ScoreSlices::kSize, std::min(t[3] * ScoreSlices::kSize, a.logits.last())}}));
  out.push_back(whole(a.state, Access::kRead));
  out.push_back(whole(a.edits, Access::kRead, true));
  out.push_back(whole(a.masks, Access::kRead, true));
  out.push_back(part_of(a.best, Access::kWrite, {{t[0], t[1]}, {t[2], t[3]}, {0, a.best.last()}}));
  out.push_back(part_of(a.sorted, Access::kWrite, {{t[0], t[1]}, {t[2], t[3]}, {0, a.sorted.last()}}));
  out.push_back(part_of(a.blocks, Access::kWrite,
                        {{t[0], t[1]}, {t[2], t[3]}, {0, a.blocks.size[2]}, {0, a.blocks.last()}}));
}

double flops(const std::byte*, const TileCoord& t) {
  return 60.0 * (t[1] - t[0]) * (t[3] - t[2]) * ScoreSlices::kSize;
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<SampleParts>(args);
  const auto& host = *reinterpret_cast<const StepHost*>(values.bytes(a.step.buffer));
  const auto& device = *reinterpret_cast<const StepDevice*>(values.bytes(a.state.buffer));
  const auto logits = values.read(a.logits), edits = values.read(a.edits);
  auto best = values.read(a.best), sorted = values.read(a.sorted), blocks = values.read(a.blocks);
  const auto vocab = size_t(a.logits.last()), slices = size_t(a.best.size[1]);
  const auto put = [](std::vector<double>& all, size_t at, const std::vector<double>& some) {
    std::copy(some.begin(), some.end(), all.begin() + long(at * some.size()));
  };
  for (i32 m = 0; m < host.wanted; ++m) {
    const i32 row = host.wanted_rows()[m], s = host.row_sequence()[row];
    const StepSequence& options = *host.sequence(s);
    if (row != options.row_begin + options.row_count - 1) continue;
    const auto scores = edited_scores(std::span(logits).subspan(size_t(m) * vocab, vocab), host, device, s,
                                      edits, values.bytes(a.masks.buffer));
    for (size_t slice = 0; slice < slices; ++slice) {
      const SliceParts parts = slice_parts(scores, i32(slice), double(options.temperature));
      const size_t at = size_t(m) * slices + slice;
      put(best, at, parts.best);
      if (!options.drops(a.logits.last())) continue;
      put(sorted, at, parts.sorted), put(blocks, at, parts.blocks);
    }
  }
  values.write(a.best, best), values.write(a.sorted, sorted), values.write(a.blocks, blocks);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<SampleParts>("sample_parts", "what the choice of a token needs of slices of its scores");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.output = "best"};
    return op;
  }();
  return spec;
}

}  // namespace heddle::sample_parts
