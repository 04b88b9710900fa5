// Tile body of attention_merge. Included once per target, inside its namespace.
namespace attention_merge {

struct Body {
  // Elements i of one head: the mean of all splits, weighed by their totals and how far each one's maximum lies below
  // the best.
  template <class Block, class Index, class View>
  static void merge_head(Block& block, const AttentionMerge& a, i32 row, i32 head, i32 splits, Index i,
                         View out) {
    float best = block.row(a.stats, row, head, 0).get(0);
    for (i32 split = 1; split < splits; ++split) {
      const float other = block.row(a.stats, row, head, split).get(0);
      best = other > best ? other : best;
    }
    float total = 0;
    auto sum = block.index(i) * 0.0f;
    for (i32 split = 0; split < splits; ++split) {
      auto stats = block.row(a.stats, row, head, split);
      const float weight = exp(stats.get(0) - best) * stats.get(1);
      total += weight;
      sum = fma(decltype(sum)(weight), block.row(a.part, row, head, split).load(i), sum);
    }
    out.store(i, sum / total);
  }

  // Heads [first, last) of row `row` into `out`, which is a whole row of y.
  template <class Block, class View>
  static void merge_row(Block& block, const AttentionMerge& a, i32 row, i32 first, i32 last, View out) {
    const i32 splits = attention_block_of_row(block.host(a.step), block.device(a.state), a.cut(), row).splits;
    block.map_rows(last - first, a.part.last(), [&](i32 j, auto i) {
      merge_head(block, a, row, first + j, splits, i, out.from((first + j) * a.part.last()));
    });
  }

  template <class Block, class View>
  static void prologue(Block& block, const AttentionMerge& a, i32 row, View out) {
    merge_row(block, a, row, 0, a.part.size[1], out);
  }

  template <class Block>
  static void run(Block& block, const AttentionMerge& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) merge_row(block, a, row, t[2], t[3], block.row(a.y, row));
  }
};

}  // namespace attention_merge
