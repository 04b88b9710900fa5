// Tile body of attention_sink. Included once per target, inside its namespace.
namespace attention_sink {

struct Body {
  template <class Block>
  static void run(Block& block, const AttentionSink& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row)
      for (i32 head = t[2]; head < t[3]; ++head) {
        const float sink = block.row(a.sinks).get(head);
        auto stats = block.row(a.stats, row, head, 0);
        const float before = stats.get(0), best = max(before, sink);
        const float kept = stats.get(1) * exp(before - best), total = kept + exp(sink - best);
        const float scale = kept / total;
        block.sync();  // all threads have read the stats
        auto made = block.row(a.new_stats, row, head, 0);
        made.set(0, best);
        made.set(1, total);
        auto x = block.row(a.part, row, head, 0), y = block.row(a.y, row, head, 0);
        block.map(a.part.last(), [&](auto i) { y.store(i, x.load(i) * scale); });
      }
  }
};

}  // namespace attention_sink
