// Tile body of flash_attention_query_blocks. Included once per target, inside its namespace.
namespace flash_attention_query_blocks {

struct Body {
  template <class Block>
  static void run(Block& block, const FlashAttentionQueryBlocks& a, const TileCoord& t) {
    block.inputs();
    const i32 queries = a.kv_num_blocks.size[2];
    auto found = block.scratch(queries);
    for (i32 key = t[2]; key < t[3]; ++key) {
      block.map(queries, [&](auto i) { found.store(i, 0.0f); });
      block.sync();
      const i32 count = block.select(queries, found, [&](i32 query) {
        const BlockList list = list_of(block, a.kv_num_blocks, a.kv_indices, t[0], t[1], query, a.block_k);
        i32 n = 0;
        while (n < list.count && list.listed[n] != key) ++n;
        return n < list.count;
      });
      auto to = block.row(a.q_indices, t[0], t[1], key);
      block.map(queries, [&](auto i) { to.store(i, found.load(i)); });
      block.row(a.q_num_blocks, t[0], t[1]).set_int(key, count);
      block.sync();
    }
  }
};

}  // namespace flash_attention_query_blocks
