// Tile body of flash_attention_earlier_backward. Included once per target, inside its namespace.
namespace flash_attention_earlier_backward {

struct Body {
  template <class Block>
  static void run(Block& block, const FlashAttentionEarlierBackward& a, const TileCoord& t) {
    block.inputs();
    constexpr float kUnseen = -1e38f;
    const i32 heads = a.dy.size[2], dim = a.dy.last();
    auto given = block.scratch(heads), weights = block.scratch(heads);
    for (i32 row = t[1]; row < t[2]; ++row) {
      block.reduce_rows(given, heads, dim, Sum(), [&](i32 head, auto i) {
        return block.row(a.dy, t[0], row, head).load(i) * block.row(a.y_in, t[0], row, head).load(i);
      });
      for (i32 head = 0; head < heads; ++head) {
        const float earlier = block.row(a.lse_in, t[0], head).get(row);
        weights.set(head, earlier < kUnseen ? kUnseen : earlier - block.row(a.lse, t[0], head).get(row));
      }
      block.sync();
      block.map(heads, [&](auto i) {
        const auto x = weights.load(i);
        using V = decltype(x + x);
        weights.store(i, where_less(x, V(kUnseen / 2), V(0.0f), exp(x)));
      });
      block.sync();
      for (i32 head = 0; head < heads; ++head) {
        const float weight = weights.get(head);
        auto dy = block.row(a.dy, t[0], row, head), to = block.row(a.dy_in, t[0], row, head);
        block.map(dim, [&](auto i) { to.store(i, dy.load(i) * weight); });
        // y_in may be anything where there was no earlier result.
        const float by_score =
            weight == 0.0f ? 0.0f : weight * (given.get(head) - block.row(a.delta, t[0], head).get(row));
        block.row(a.dlse_in, t[0], head).set(row, by_score);
      }
      block.sync();
    }
  }
};

}  // namespace flash_attention_earlier_backward
