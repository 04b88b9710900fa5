// Tile body of route. Included once per target, inside its namespace.
namespace route {

constexpr float kNever = -3e38f;

struct Body {
  // The largest of `scores` in [begin, begin + n), which it leaves out from then on.
  template <class Block, class View>
  static Best take_best(Block& block, View scores, i32 begin, i32 n) {
    Best best = block.argmax(n, [&](auto i) { return scores.load(i + begin); });
    best.index += begin;
    block.sync();
    scores.set(best.index, kNever);
    block.sync();
    return best;
  }

  // The rows that a tile works with.
  template <class View>
  struct Work {
    View scores, left;  // left: scores of the experts that can still be chosen
    View rest, of_group, kept;
    View chosen, factors;
  };

  // Leaves out the experts of all groups but the best.
  template <class Block, class View>
  static void keep_groups(Block& block, const Route& a, Work<View>& w) {
    const i32 experts = a.logits.last(), size = experts / a.groups;
    block.map(experts, [&](auto i) { w.rest.store(i, w.left.load(i)); });
    block.map(a.groups, [&](auto i) { w.kept.store(i, block.index(i) * 0.0f); });
    block.sync();
    for (i32 g = 0; g < a.groups; ++g) {
      float sum = 0;
      for (i32 n = 0; n < a.scores_of_group; ++n) sum += take_best(block, w.rest, g * size, size).value;
      w.of_group.set(g, sum);
    }
    block.sync();
    for (i32 n = 0; n < a.groups_kept; ++n) w.kept.set(take_best(block, w.of_group, 0, a.groups).index, 1);
    block.sync();
    for (i32 g = 0; g < a.groups; ++g) {
      if (w.kept.get(g) > 0) continue;
      auto group = w.left.from(g * size);
      block.map(size, [&](auto i) { group.store(i, block.index(i) * 0.0f + kNever); });
    }
    block.sync();
  }

  template <class Block, class View>
  static void score(Block& block, const Route& a, i32 row, View scores) {
    const i32 experts = a.logits.last();
    auto logits = block.row(a.logits, row);
    if (a.sparse_mixer) {
      block.map(experts, [&](auto i) { scores.store(i, logits.load(i)); });
      return;
    }
    if (a.sigmoid) {
      block.map(experts, [&](auto i) { scores.store(i, sigmoid(logits.load(i))); });
      return;
    }
    const float top = block.reduce(experts, Max(), [&](auto i) { return logits.load(i); });
    const float sum = block.reduce(experts, Sum(), [&](auto i) { return exp(logits.load(i) - top); });
    block.map(experts, [&](auto i) { scores.store(i, exp(logits.load(i) - top) / sum); });
  }

  // The share of the best among those that are `left` and it; NaN where the best is not finite.
  template <class Block, class View>
  static float mixed_share(Block& block, const Route& a, View left, float best) {
    return 1.0f / (1.0f + (best - best) + block.reduce(a.logits.last(), Sum(), [&](auto i) {
             const auto score = left.load(i);
             using V = decltype(score + score);
             const V top(best), distance = (top - score) / max(abs(score), top);
             return where_less(V(a.threshold), distance, V(0.0f), exp(score - top));
           }));
  }

  template <class Block>
  static void run(Block& block, const Route& a, const TileCoord& t) {
    block.inputs();
    const i32 experts = a.logits.last(), taken = a.choice.last();
    Work<decltype(block.scratch(1))> w{block.scratch(experts),
                                       block.scratch(experts),
                                       block.scratch(experts),
                                       block.scratch(a.groups),
                                       block.scratch(a.groups),
                                       block.scratch(taken),
                                       block.scratch(a.factors.exists() ? taken : 0)};
    for (i32 row = t[0]; row < t[1]; ++row) {
      score(block, a, row, w.scores);
      if (a.bias.exists()) {
        auto bias = block.row(a.bias);
        block.map(experts, [&](auto i) { w.left.store(i, w.scores.load(i) + bias.load(i)); });
      } else {
        block.map(experts, [&](auto i) { w.left.store(i, w.scores.load(i)); });
      }
      block.sync();
      if (a.groups_kept < a.groups) keep_groups(block, a, w);
      auto choice = block.row(a.choice, row), share = block.row(a.share, row);
      for (i32 n = 0; n < taken; ++n) {
        const Best best = take_best(block, w.left, 0, experts);
        const i32 expert = best.index;
        choice.set_int(n, expert);
        w.chosen.set(n, a.sparse_mixer ? mixed_share(block, a, w.left, best.value) : w.scores.get(expert));
        if (a.factors.exists()) w.factors.set(n, block.row(a.factors).get(expert));
      }
      block.sync();
      // The scores of a sigmoid may all be nothing.
      const float sum =
          a.normalise ? block.reduce(taken, Sum(), [&](auto i) { return w.chosen.load(i); }) + 1e-20f : 1.0f;
      if (a.factors.exists())
        block.map(taken,
                  [&](auto i) { share.store(i, w.chosen.load(i) / sum * a.scale * w.factors.load(i)); });
      else
        block.map(taken, [&](auto i) { share.store(i, w.chosen.load(i) / sum * a.scale); });
      block.sync();
    }
  }
};

}  // namespace route
