// Tile body of flash_attention_delta. Included once per target, inside its namespace.
namespace flash_attention_delta {

struct Body {
  template <class Block>
  static void run(Block& block, const FlashAttentionDelta& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.y.size[2];
    auto sums = block.scratch(heads);
    for (i32 row = t[1]; row < t[2]; ++row) {
      block.reduce_rows(sums, heads, a.y.last(), Sum(), [&](i32 head, auto i) {
        return block.row(a.y, t[0], row, head).load(i) * block.row(a.dy, t[0], row, head).load(i);
      });
      block.sync();
      for (i32 head = 0; head < heads; ++head) {
        const float less = a.dlse.exists() ? float(block.row(a.dlse, t[0], head).get(row)) : 0.0f;
        block.row(a.delta, t[0], head).set(row, sums.get(head) - less);
      }
      block.sync();
    }
  }
};

}  // namespace flash_attention_delta
