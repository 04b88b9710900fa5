// Tile body of flash_attention_delta. Included once per target, inside its namespace.
namespace flash_attention_delta {

struct Body {
  template <class Block>
  static void run(Block& block, const FlashAttentionDelta& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[1]; row < t[2]; ++row)
      for (i32 head = 0; head < a.y.size[2]; ++head) {
        auto y = block.row(a.y, t[0], row, head), dy = block.row(a.dy, t[0], row, head);
        const float sum = block.reduce(a.y.last(), Sum(), [&](auto i) { return y.load(i) * dy.load(i); });
        const float less = a.dlse.exists() ? float(block.row(a.dlse, t[0], head).get(row)) : 0.0f;
        block.row(a.delta, t[0], head).set(row, sum - less);
      }
  }
};

}  // namespace flash_attention_delta
