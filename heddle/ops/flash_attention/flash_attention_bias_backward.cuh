// Tile body of flash_attention_bias_backward. Included once per target, inside its namespace.
namespace flash_attention_bias_backward {

#include "heddle/ops/flash_attention/attention_pairs.cuh"

struct Body {
  // Adds what queries of one head of a batch give, for a chunk of keys. `sums`: those of the first query.
  template <class Block, class Chip, class View>
  static void add_head(Block& block, const FlashAttentionBiasBackward& a, const Queries& work, Chip& chip,
                       View sums, AttentionRange chunk) {
    for (i32 n = 0; n < work.list.count; ++n) {
      const AttentionRange listed = work.list.range(n, work.mask.keys);
      const AttentionRange part{listed.begin > chunk.begin ? listed.begin : chunk.begin,
                                listed.end < chunk.end ? listed.end : chunk.end};
      if (part.begin >= part.end) continue;
      load_queries(block, a, work, chip);
      load_keys(block, a, work.batch, work.group, part.begin, part.end - part.begin, chip);
      multiply(block, chip);
      for (i32 r = 0; r < work.rows(); ++r) {
        auto sum = sums.from(r * kChunk + part.begin - chunk.begin);
        of_query<SameScore>(block, a, work, chip, r, part,
                            [&](auto i, auto, auto ds, auto) { sum.store(i, sum.load(i) + ds); });
      }
      block.sync();
    }
  }

  template <class Block>
  static void run(Block& block, const FlashAttentionBiasBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 rows = t[3] - t[2], keys = a.k.size[1];
    auto product = [&](i32 k) { return block.product(rows, kChunk, k, DType::kF32); };
    auto fragment = [&] { return block.fragment(0, rows, 0, kChunk); };
    Pieces<decltype(product(1)), decltype(fragment())> chip{product(a.q.last()), product(a.v.last()),
                                                            fragment(), fragment()};
    auto sums = block.scratch(rows * kChunk);
    const AttentionSequence s{0, a.q.size[1], 0, keys};
    const AttentionMask mask = attention_mask(a, s);
    const i32 heads = a.q.size[2] / a.k.size[2];
    const bool all_batches = a.bias.size[0] == 1, all_heads = a.bias.size[1] == 1;
    const i32 batch = all_batches ? a.q.size[0] : t[0] + 1, head = all_heads ? a.q.size[2] : t[1] + 1;
    for (i32 begin = 0; begin < keys; begin += kChunk) {
      const i32 count = keys - begin < kChunk ? keys - begin : kChunk;
      block.map(rows * kChunk, [&](auto i) { sums.store(i, 0.0f); });
      block.sync();
      for (i32 b = all_batches ? 0 : t[0]; b < batch; ++b)
        for (i32 h = all_heads ? 0 : t[1]; h < head; ++h)
          for (i32 from = t[2], to; from < t[3]; from = to) {
            to = part_end(from, t[3], a.kv_num_blocks.exists() ? a.block_q : 0);
            const BlockList list =
                list_of(block, a.kv_num_blocks, a.kv_indices, b, h, from / a.block_q, a.block_k);
            add_head(block, a, Queries{s, mask, list, b, h / heads, h, 1, from, to}, chip,
                     sums.from((from - t[2]) * kChunk), {begin, begin + count});
          }
      for (i32 r = 0; r < rows; ++r) {
        auto to = block.row(a.dbias, t[0], t[1], t[2] + r).from(begin);
        block.map(count, [&](auto i) { to.store(i, sums.from(r * kChunk).load(i)); });
      }
      block.sync();
    }
  }
};

}  // namespace flash_attention_bias_backward
