// Tile body of flash_attention_sinks_backward. Included once per target, inside its namespace.
namespace flash_attention_sinks_backward {

struct Body {
  template <class Block>
  static void run(Block& block, const FlashAttentionSinksBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 head = t[0]; head < t[1]; ++head) {
      const float sink = block.row(a.sinks).get(head);
      float total = 0;
      for (i32 batch = 0; batch < a.lse.size[0]; ++batch) {
        auto lse = block.row(a.lse, batch, head), delta = block.row(a.delta, batch, head);
        total = total + block.reduce(a.lse.last(), Sum(), [&](auto i) {
          auto top = lse.load(i);
          return exp(decltype(top)(sink) - top) * delta.load(i);
        });
      }
      block.row(a.dsinks).set(head, -total);
    }
  }
};

}  // namespace flash_attention_sinks_backward
