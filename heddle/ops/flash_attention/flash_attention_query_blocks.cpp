#include "heddle/ops/flash_attention/flash_attention_query_blocks.h"

#include <algorithm>

#include "heddle/ir/rules.h"

namespace heddle::flash_attention_query_blocks {

std::vector<Case> cases();

namespace {

constexpr const char* kName = "flash_attention_query_blocks";

void infer(std::byte* args) {
  auto& a = as<FlashAttentionQueryBlocks>(args);
  require_rank(kName, "k", a.k, 4);
  require_rank(kName, "kv_indices", a.kv_indices, 4);
  require_dtype(kName, "kv_indices", a.kv_indices, DType::kI32);
  const i32 *const size = a.kv_indices.size, batch = size[0], heads = size[1], queries = size[2];
  require_shape(kName, "kv_num_blocks", a.kv_num_blocks, {batch, heads, queries});
  require_dtype(kName, "kv_num_blocks", a.kv_num_blocks, DType::kI32);
  require(a.block_k > 0, "[{}] block_k = {}; must be positive", kName, a.block_k);
  const i32 keys = blocks_of(a.k.size[1], a.block_k);
  set_output(kName, "q_num_blocks", a.q_num_blocks, DType::kI32, {batch, heads, keys});
  set_output(kName, "q_indices", a.q_indices, DType::kI32, {batch, heads, keys, queries});
}

// Coordinates: batch and head of the lists, first block of keys, the one after the last.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<FlashAttentionQueryBlocks>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.q_indices.size[0]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.q_indices.size[1]},
          {.extent = a.q_indices.size[2], .preferred = 1}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<FlashAttentionQueryBlocks>(args);
  using Range = std::array<i32, 2>;
  const Range batch{t[0], t[0] + 1}, head{t[1], t[1] + 1}, blocks{t[2], t[3]};
  const Range queries{0, a.kv_indices.size[2]}, listed{0, a.kv_indices.size[3]};
  out.push_back(part_of(a.kv_num_blocks, Access::kRead, {batch, head, queries}));
  out.push_back(part_of(a.kv_indices, Access::kRead, {batch, head, queries, listed}));
  out.push_back(part_of(a.q_num_blocks, Access::kWrite, {batch, head, blocks}));
  out.push_back(part_of(a.q_indices, Access::kWrite, {batch, head, blocks, queries}));
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionQueryBlocks>(args);
  return double(t[3] - t[2]) * a.kv_indices.size[2] * a.kv_indices.size[3];
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<FlashAttentionQueryBlocks>(args);
  const std::vector<double> counts = values.read(a.kv_num_blocks), indices = values.read(a.kv_indices);
  const i32 keys = a.q_indices.size[2], queries = a.q_indices.size[3], most = a.kv_indices.size[3];
  std::vector<double> found(size_t(elements(a.q_indices))), numbers(size_t(elements(a.q_num_blocks)));
  for (size_t line = 0; line < counts.size(); ++line) {  // a block of queries of a head
    const size_t head = line / size_t(queries), query = line % size_t(queries);
    const auto first = indices.begin() + i64(line) * most;
    std::vector<double> listed(first, first + std::clamp(i32(counts[line]), 0, most));
    std::ranges::sort(listed);
    listed.erase(std::ranges::unique(listed).begin(), listed.end());
    for (const double key : listed) {
      if (key < 0 || key >= keys) continue;
      const size_t at = head * size_t(keys) + size_t(key);
      found[at * size_t(queries) + size_t(numbers[at]++)] = double(query);
    }
  }
  values.write(a.q_num_blocks, numbers);
  values.write(a.q_indices, found);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<FlashAttentionQueryBlocks>(kName, "the blocks of queries that list each block of keys");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = [](const std::byte* args, const TileCoord&) {
      return i64(4) * as<FlashAttentionQueryBlocks>(args).kv_num_blocks.size[2];
    };
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::flash_attention_query_blocks
