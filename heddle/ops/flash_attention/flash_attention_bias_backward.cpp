#include "heddle/ops/flash_attention/flash_attention_bias_backward.h"

#include "heddle/ops/flash_attention/attention_common.h"
#include "heddle/ops/flash_attention/attention_tiles.h"

namespace heddle::flash_attention_bias_backward {

std::vector<Case> cases();

namespace {

// The arguments with the sequences that they do not have: there is one.
struct Form : FlashAttentionBiasBackward {
  Tensor cu_seqlens_q, cu_seqlens_k;
};

Form form_of(const FlashAttentionBiasBackward& a) {
  return {a, {}, {}};
}

void infer(std::byte* args) {
  auto& a = as<FlashAttentionBiasBackward>(args);
  require_attention("flash_attention_bias_backward", form_of(a));
  require_given("flash_attention_bias_backward", a);
  set_output("flash_attention_bias_backward", "dbias", a.dbias, a.bias.dtype,
             {a.bias.size[0], a.bias.size[1], a.bias.size[2], a.bias.size[3]});
}

// Coordinates: batch and head of the bias, first query, query after the last.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<FlashAttentionBiasBackward>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.bias.size[0]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.bias.size[1]},
          {.extent = a.q.size[1], .preferred = kAttentionTileRows}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<FlashAttentionBiasBackward>(args);
  using Range = std::array<i32, 2>;
  const bool all_batches = a.bias.size[0] == 1, all_heads = a.bias.size[1] == 1;
  const i32 heads = heads_of_group(a);
  const Range rows{t[2], t[3]}, batches{all_batches ? 0 : t[0], all_batches ? a.q.size[0] : t[0] + 1},
      its_heads{all_heads ? 0 : t[1], all_heads ? a.q.size[2] : t[1] + 1},
      groups{its_heads[0] / heads, (its_heads[1] - 1) / heads + 1};
  for (i32 b = batches[0]; b < batches[1]; ++b) {
    const Range batch{b, b + 1};
    for (const Tensor* tensor : {&a.q, &a.dy})
      out.push_back(part_of(*tensor, Access::kRead, {batch, rows, its_heads, {0, tensor->last()}}));
    for (const Tensor* tensor : {&a.k, &a.v})
      out.push_back(
          part_of(*tensor, Access::kRead, {batch, {0, tensor->size[1]}, groups, {0, tensor->last()}}));
    for (const Tensor* tensor : {&a.lse, &a.delta})
      out.push_back(part_of(*tensor, Access::kRead, {batch, its_heads, rows}));
  }
  for (const Tensor* tensor : {&a.alibi_slopes, &a.kv_num_blocks, &a.kv_indices})
    if (tensor->exists()) out.push_back(whole(*tensor, Access::kRead));
  for (auto [tensor, access] : {std::pair{&a.bias, Access::kRead}, {&a.dbias, Access::kWrite}})
    out.push_back(part_of(*tensor, access, {{t[0], t[0] + 1}, {t[1], t[1] + 1}, rows, {0, tensor->last()}}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionBiasBackward>(args);
  const double summed = double(a.q.size[0]) / a.bias.size[0] * a.q.size[2] / a.bias.size[1];
  return 2.0 * (t[3] - t[2]) * a.k.size[1] * (a.q.last() + a.v.last()) * summed;
}

i64 scratch(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionBiasBackward>(args);
  const i64 rows = t[3] - t[2], dims = i64(a.q.last()) + a.v.last();
  return 4 * rows * (dims + 3 * kAttentionChunk) + kAttentionChunk * (dims + 2) * 4;
}

void reference(const std::byte* args, Values& values) {
  const Form a = form_of(as<FlashAttentionBiasBackward>(args));
  const ExactAttention exact(a, values);
  const ExactScores scores(a, values);
  std::vector<double> dbias(size_t(elements(a.bias)));
  exact.each_pair(
      [&](const ExactAttention<Form>::Pair& p) { dbias[exact.bias_at(p)] += scores.of(exact, p).gradient; });
  values.write(a.dbias, dbias);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<FlashAttentionBiasBackward>("flash_attention_bias_backward",
                                                  "the gradient of flash_attention by its bias");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::flash_attention_bias_backward
