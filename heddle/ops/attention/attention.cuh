// Tile body of attention. Included once per target, inside its namespace.
//
// A chunk of positions at a time:
//   1. keys (transposed) and values go on chip, from pages or from this step's rows
//   2. scores of all queries of the tile, lanes over positions
//   3. softmax with a running maximum: weights, and how much older sums decay
//   4. weighted values, lanes over head_dim
// Chunks are counted from the begin of the split, so that neither pages nor the cut of a prompt into steps
// changes the order of a sum.
namespace attention {

constexpr i32 kChunk = 64;  // positions
constexpr float kLowest = -3e38f;

template <class View>
struct OnChip {
  View queries;             // [queries, head_dim], scaled
  View keys;                // [head_dim, kChunk]
  View values;              // [kChunk, head_dim]
  View weights;             // [queries, kChunk]
  View sums;                // [queries, head_dim]
  View best, total, decay;  // [queries]
};

struct Body {
  // The rows and positions of a tile.
  struct Work {
    AttentionBlock plan;
    const i32* pages;
    i32 first_row;  // of the sequence
    i32 kv_head, split, group, queries;

    i32 row(i32 query) const { return plan.row_begin + query / group; }
    i32 head(i32 query) const { return kv_head * group + query % group; }
    // Positions of the chunk at `begin` that a query sees.
    i32 visible(i32 query, i32 begin, i32 count) const {
      const i32 seen = plan.start + row(query) - first_row + 1 - begin;
      return seen < count ? seen : count;
    }
  };

  template <class Block, class View>
  static void load_queries(Block& block, const Attention& a, const Work& work, OnChip<View>& chip) {
    for (i32 q = 0; q < work.queries; ++q) {
      auto in = block.row(a.qkv, work.row(q)).from(work.head(q) * a.head_dim);
      auto query = chip.queries.from(q * a.head_dim), sum = chip.sums.from(q * a.head_dim);
      block.map(a.head_dim, [&](auto i) {
        query.store(i, in.load(i) * a.scale);
        sum.store(i, 0.0f);
      });
      chip.best.set(q, kLowest);
      chip.total.set(q, 0);
    }
  }

  template <class Block, class View>
  static void load_chunk(Block& block, const Attention& a, const Work& work, OnChip<View>& chip, i32 begin,
                         i32 count) {
    const i32 page_size = a.keys.size[2], column = work.kv_head * a.head_dim;
    for (i32 s = 0; s < count; ++s) {
      const i32 position = begin + s;
      auto key = chip.keys.from(s).every(kChunk);
      auto value = chip.values.from(s * a.head_dim);
      if (position < work.plan.start) {
        const i32 page = work.pages[position / page_size], slot = position % page_size;
        auto old_key = block.row(a.keys, page, work.kv_head, slot);
        auto old_value = block.row(a.values, page, work.kv_head, slot);
        block.map(a.head_dim, [&](auto i) {
          key.store(i, old_key.load(i));
          value.store(i, old_value.load(i));
        });
      } else {
        auto row = block.row(a.qkv, work.first_row + position - work.plan.start);
        auto new_key = row.from(a.key_column + column), new_value = row.from(a.value_column + column);
        block.map(a.head_dim, [&](auto i) {
          key.store(i, new_key.load_rounded(i, a.keys.dtype));
          value.store(i, new_value.load_rounded(i, a.values.dtype));
        });
      }
    }
  }

  template <i32 kQueries, class Block, class View>
  static void scores(Block& block, i32 head_dim, OnChip<View>& chip, i32 query, i32 count) {
    block.map(count, [&](auto s) {
      decltype(chip.keys.load(s)) sum[kQueries];
      for (i32 q = 0; q < kQueries; ++q) sum[q] = 0.0f;
      for (i32 i = 0; i < head_dim; ++i) {
        auto key = chip.keys.from(i * kChunk).load(s);
        for (i32 q = 0; q < kQueries; ++q)
          sum[q] = fma(decltype(key)(chip.queries.get((query + q) * head_dim + i)), key, sum[q]);
      }
      for (i32 q = 0; q < kQueries; ++q) chip.weights.from((query + q) * kChunk).store(s, sum[q]);
    });
  }

  template <class Block, class View>
  static void softmax(Block& block, OnChip<View>& chip, i32 query, i32 visible, i32 count) {
    auto weight = chip.weights.from(query * kChunk);
    if (visible <= 0) {
      block.map(count, [&](auto s) { weight.store(s, 0.0f); });
      chip.decay.set(query, 1);
      return;
    }
    const float before = chip.best.get(query), total = chip.total.get(query);
    const float here = block.reduce(visible, Max(), [&](auto s) { return weight.load(s); });
    const float best = here > before ? here : before, decay = exp(before - best);
    block.map(count, [&](auto s) {
      auto score = weight.load(s);
      using Value = decltype(score);
      weight.store(s, where_less(block.index(s), Value(float(visible)), exp(score - best), Value(0.0f)));
    });
    const float sum = block.reduce(visible, Sum(), [&](auto s) { return weight.load(s); });
    chip.best.set(query, best);
    chip.total.set(query, total * decay + sum);
    chip.decay.set(query, decay);
  }

  template <i32 kQueries, class Block, class View>
  static void weigh_values(Block& block, i32 head_dim, OnChip<View>& chip, i32 query, i32 count) {
    block.map(head_dim, [&](auto i) {
      decltype(chip.values.load(i)) sum[kQueries];
      for (i32 q = 0; q < kQueries; ++q)
        sum[q] = chip.sums.from((query + q) * head_dim).load(i) * chip.decay.get(query + q);
      for (i32 s = 0; s < count; ++s) {
        auto value = chip.values.from(s * head_dim).load(i);
        for (i32 q = 0; q < kQueries; ++q)
          sum[q] = fma(decltype(value)(chip.weights.get((query + q) * kChunk + s)), value, sum[q]);
      }
      for (i32 q = 0; q < kQueries; ++q) chip.sums.from((query + q) * head_dim).store(i, sum[q]);
    });
  }

  template <class Block, class View>
  static void add_chunk(Block& block, const Attention& a, const Work& work, OnChip<View>& chip, i32 begin,
                        i32 count) {
    // Queries that share a load of a key or value: enough sums to hide the latency of their additions.
    const i32 n = work.queries, by_eight = n / 8 * 8, by_four = n / 4 * 4;
    for (i32 q = 0; q < by_eight; q += 8) scores<8>(block, a.head_dim, chip, q, count);
    for (i32 q = by_eight; q < by_four; q += 4) scores<4>(block, a.head_dim, chip, q, count);
    for (i32 q = by_four; q < n; ++q) scores<1>(block, a.head_dim, chip, q, count);
    for (i32 q = 0; q < work.queries; ++q) softmax(block, chip, q, work.visible(q, begin, count), count);
    block.sync();
    for (i32 q = 0; q < by_eight; q += 8) weigh_values<8>(block, a.head_dim, chip, q, count);
    for (i32 q = by_eight; q < by_four; q += 4) weigh_values<4>(block, a.head_dim, chip, q, count);
    for (i32 q = by_four; q < n; ++q) weigh_values<1>(block, a.head_dim, chip, q, count);
  }

  template <class Block>
  static void run(Block& block, const Attention& a, const TileCoord& t) {
    block.inputs();
    const StepHost& host = block.host(a.step);
    const AttentionBlock plan = attention_block(host, block.device(a.state), a.cut(), t[1]);
    if (plan.sequence < 0 || t[2] >= plan.splits) return block.dead();
    const i32 group = a.heads / a.kv_heads;
    const Work work{plan,
                    host.pages(plan.sequence),
                    host.sequence(plan.sequence)->row_begin,
                    t[0],
                    t[2],
                    group,
                    (plan.row_end - plan.row_begin) * group};
    auto make = [&](i32 n) { return block.scratch(n); };
    using View = decltype(make(1));
    OnChip<View> chip{make(work.queries * a.head_dim),
                      make(kChunk * a.head_dim),
                      make(kChunk * a.head_dim),
                      make(work.queries * kChunk),
                      make(work.queries * a.head_dim),
                      make(work.queries),
                      make(work.queries),
                      make(work.queries)};
    load_queries(block, a, work, chip);
    const i32 first = t[2] * plan.split_size;
    const i32 last = first + plan.split_size < plan.length ? first + plan.split_size : plan.length;
    for (i32 begin = first; begin < last; begin += kChunk) {
      const i32 count = last - begin < kChunk ? last - begin : kChunk;
      load_chunk(block, a, work, chip, begin, count);
      block.sync();
      add_chunk(block, a, work, chip, begin, count);
      block.sync();
    }
    for (i32 q = 0; q < work.queries; ++q) {
      auto part = block.row(a.part, work.row(q), work.head(q), work.split);
      auto sum = chip.sums.from(q * a.head_dim);
      block.map(a.head_dim, [&](auto i) { part.store(i, sum.load(i)); });
      auto stats = block.row(a.stats, work.row(q), work.head(q), work.split);
      stats.set(0, chip.best.get(q));
      stats.set(1, chip.total.get(q));
    }
  }
};

}  // namespace attention
