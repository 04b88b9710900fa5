// Tile body of attention. Included once per target, inside its namespace.
//
// A chunk of positions at a time:
//   1. keys and values go on chip, from pages or from this step's rows, as the right matrices of two products
//   2. scores: queries x keys
//   3. softmax with a running maximum: weights, and how much older sums decay
//   4. weights x values, added to the decayed sums
// Chunks are counted from the begin of the split, so that neither pages nor the cut of a prompt into steps
// changes the order of a sum.
namespace attention {

constexpr float kLowest = Attention::kLowest;

template <class View, class Product, class Fragment>
struct OnChip {
  Product by_keys;          // scaled queries [queries, score_dim], keys [chunk, score_dim]
  Product by_values;        // weights [queries, chunk], values [value_dim, chunk]
  Fragment scores;          // [queries, chunk]
  Fragment values;          // [queries, value_dim]: of the chunk
  View sums;                // [queries, value_dim]
  View best, total, decay;  // [queries]
};

struct Body {
  // The rows and positions of a tile.
  struct Work {
    AttentionBlock plan;
    const i32* pages;
    i32 first_row;  // the sequence's first row
    i32 first_head, heads, kv_head, split, queries;
    i32 window;

    i32 row(i32 query) const { return plan.row_begin + query / heads; }
    i32 head(i32 query) const { return first_head + query % heads; }
    i32 position(i32 query) const { return plan.start + row(query) - first_row; }
    // The first position that a query sees, and the one after its last.
    i32 first_seen(i32 query) const { return window > 0 ? position(query) + 1 - window : 0; }
    i32 end_seen(i32 query) const { return position(query) + 1; }
    // Where the `dim` keys, or values, of a position lie: in pages, or in this step's rows.
    template <bool kInPages>
    const u8* row_of(const Tensor& in_pages, const Tensor& in_rows, i32 position, i32 dim) const {
      const Tensor& all = kInPages ? in_pages : in_rows;
      const u32 size = u32(in_pages.size[2]), page = u32(position) / size;
      const i64 at = kInPages ? pages[page] * i64(all.stride[0]) + kv_head * i64(all.stride[1]) +
                                    i32(u32(position) - page * size) * i64(all.stride[2])
                              : i64(first_row + position - plan.start) * all.stride[0] + kv_head * dim;
      return all.data + at * size_of(all.dtype);
    }
    const u8* row_of(const Tensor& in_pages, const Tensor& in_rows, i32 position, i32 dim) const {
      return position < plan.start ? row_of<true>(in_pages, in_rows, position, dim)
                                   : row_of<false>(in_pages, in_rows, position, dim);
    }
    // The positions of the split.
    i32 begin() const { return plan.first + split * plan.split_size; }
    i32 end() const {
      return begin() + plan.split_size < plan.length ? begin() + plan.split_size : plan.length;
    }
  };

  template <class Block, class Chip>
  static void load_queries(Block& block, const Attention& a, const Work& work, Chip& chip) {
    const i32 head_dim = a.head_dim(), value_dim = a.value_dim();
    for (i32 q = 0; q < work.queries; ++q) {
      auto in = block.row(a.q, work.row(q)).from(work.head(q) * head_dim);
      auto query = chip.by_keys.left_row(q);
      auto sum = chip.sums.from(q * value_dim);
      block.map(head_dim, [&](auto i) { query.store(i, in.load(i) * a.scale); });
      block.map(value_dim, [&](auto i) { sum.store(i, 0.0f); });
      if (a.is_latent()) {
        auto latent = block.row(a.latent, work.row(q)).from(work.head(q) * value_dim);
        block.map(value_dim, [&](auto i) { query.store(i + head_dim, latent.load(i) * a.scale); });
      }
      chip.best.set(q, kLowest);
      chip.total.set(q, 0);
    }
  }

  // Positions as rows of the keys, columns of the values.
  template <class Block, class Chip, class View>
  static void load_lines(Block& block, const Attention& a, Chip& chip, i32 s, Lines<View> k, Lines<View> v) {
    block.set_right_rows(chip.by_keys, s, 0, k);
    if (a.is_latent()) block.set_right_rows(chip.by_keys, s, a.head_dim(), v);
    block.set_right_columns(chip.by_values, s, v);
  }

  // Positions of a page are evenly spaced, and so are those of this step. After the last position there are finite values with
  // weight 0.
  template <class Block, class Chip>
  static void load_chunk(Block& block, const Attention& a, const Work& work, Chip& chip, i32 begin,
                         i32 count) {
    const i32 page_size = a.keys.size[2], head = work.kv_head, key = a.head_dim(), value = a.value_dim();
    const auto smaller = [](i32 x, i32 y) { return x < y ? x : y; };
    for (i32 s = 0; s < count;) {
      const i32 position = begin + s, page = position / page_size, slot = position % page_size;
      const i32 row = work.first_row + position - work.plan.start;
      i32 run = count - s;
      if (position < work.plan.start) {
        run = smaller(run, smaller(page_size - slot, work.plan.start - position));
        load_lines(block, a, chip, s,
                   Lines{block.row(a.keys, work.pages[page], head, slot), a.keys.stride[2], run, key},
                   Lines{block.row(a.values, work.pages[page], head, slot), a.values.stride[2], run, value});
      } else {
        load_lines(block, a, chip, s, Lines{block.row(a.k, row).from(head * key), a.k.stride[0], run, key},
                   Lines{block.row(a.v, row).from(head * value), a.v.stride[0], run, value});
      }
      s += run;
    }
  }

  // For a chunk of which the query sees positions [first, end). `biased(s, score)`: with the bias of position s.
  template <class Block, class Chip, class Biased>
  static void softmax(Block& block, const Attention& a, Chip& chip, i32 query, i32 first, i32 end,
                      Biased biased) {
    auto score = chip.scores.row(query);
    auto weight = chip.by_values.left_row(query);
    const float before = chip.best.get(query), earlier = chip.total.get(query);
    const auto seen = [&](auto s, auto value, float otherwise) {
      using Value = decltype(value);
      const Value none(otherwise), index = block.index(s);
      return where_less(index, Value(float(first)), none, where_less(index, Value(float(end)), value, none));
    };
    const auto modified = [&](auto s) {
      auto value = score.load(s);
      if (a.softcap > 0) value = tanh(value * (1 / a.softcap)) * a.softcap;
      return biased(s, value);
    };
    const float here = block.reduce(a.chunk, Max(), [&](auto s) { return seen(s, modified(s), kLowest); });
    const float best = max(before, here), decay = exp(before - best);
    const float sum = block.reduce(a.chunk, Sum(), [&](auto s) {
      auto value = seen(s, exp(modified(s) - best), 0);
      weight.store(s, value);
      return value;
    });
    // All threads have read what is set here: the reductions above wait for them.
    chip.total.set(query, earlier * decay + sum);
    chip.best.set(query, best);
    chip.decay.set(query, decay);
  }

  template <class Block, class Chip>
  static void add_chunk(Block& block, const Attention& a, const Work& work, Chip& chip, i32 begin,
                        i32 count) {
    block.mma(chip.scores, chip.by_keys);
    block.sync();
    for (i32 q = 0; q < work.queries; ++q) {
      const i32 end = work.end_seen(q) - begin;
      const i32 first = work.first_seen(q) - begin, last = end < count ? end : count;
      if (a.has_bias()) {
        auto bias = block.row(a.bias, work.head(q)).from(begin);
        softmax(block, a, chip, q, first, last, [&](auto s, auto score) { return score + bias.load(s); });
      } else {
        softmax(block, a, chip, q, first, last, [](auto, auto score) { return score; });
      }
    }
    block.sync();
    block.mma(chip.values, chip.by_values);
    block.sync();
    for (i32 q = 0; q < work.queries; ++q) {
      auto sum = chip.sums.from(q * a.value_dim());
      auto value = chip.values.row(q);
      const float decay = chip.decay.get(q);
      block.map(a.value_dim(), [&](auto i) { sum.store(i, sum.load(i) * decay + value.load(i)); });
    }
  }

  template <class Block, class Chip>
  static void add_split(Block& block, const Attention& a, const Work& work, Chip& chip) {
    load_queries(block, a, work, chip);
    const i32 last = work.end(), chunk = a.chunk;
    for (i32 begin = work.begin(); begin < last; begin += chunk) {
      if (begin + chunk <= work.first_seen(0)) continue;  // no query sees any of it
      const i32 count = last - begin < chunk ? last - begin : chunk;
      load_chunk(block, a, work, chip, begin, count);
      block.sync();
      add_chunk(block, a, work, chip, begin, count);
      block.sync();
    }
  }

  template <class Block, class Chip, class Part, class Stats>
  static void store_split(Block& block, const Attention& a, Chip& chip, i32 q, Part part, Stats stats) {
    auto sum = chip.sums.from(q * a.value_dim());
    const float total = chip.total.get(q), scale = total == 0.0f ? 0.0f : 1 / total;
    block.map(a.value_dim(), [&](auto i) { part.store(i, sum.load(i) * scale); });
    stats.set(0, chip.best.get(q));
    stats.set(1, total);
  }

  // All splits one after the other. Those that a row does not see weigh 0, so that a row's bits are those that it has in any block.
  template <class Block, class Chip>
  static void run_joined(Block& block, const Attention& a, Work work, Chip& chip) {
    const i32 dim = a.value_dim(), splits = work.plan.splits;
    const auto parts = block.scratch(work.queries * splits * dim);
    const auto stats = block.scratch(work.queries * splits * 2);
    for (work.split = 0; work.split < splits; ++work.split) {
      add_split(block, a, work, chip);
      for (i32 q = 0; q < work.queries; ++q)
        store_split(block, a, chip, q, parts.from((q * splits + work.split) * dim),
                    stats.from((q * splits + work.split) * 2));
      block.sync();
    }
    for (i32 q = 0; q < work.queries; ++q) {  // as attention_merge
      const auto part = parts.from(q * splits * dim), mine = stats.from(q * splits * 2);
      float best = mine.get(0), total = 0;
      for (i32 split = 1; split < splits; ++split) best = max(best, mine.get(2 * split));
      for (i32 split = 0; split < splits; ++split)
        total += exp(mine.get(2 * split) - best) * mine.get(2 * split + 1);
      auto out = block.row(a.part, work.row(q), work.head(q), 0);
      block.map(dim, [&](auto i) {
        auto sum = block.index(i) * 0.0f;
        for (i32 split = 0; split < splits; ++split) {
          const float weight = exp(mine.get(2 * split) - best) * mine.get(2 * split + 1);
          sum = fma(decltype(sum)(weight), part.from(split * dim).load(i), sum);
        }
        out.store(i, sum / total);
      });
      auto of_all = block.row(a.stats, work.row(q), work.head(q), 0);
      of_all.set(0, best);
      of_all.set(1, total);
    }
  }

  // The work of a tile in this step; none if it has no queries. Call it where device() may be used.
  template <class Block>
  static Work work_of(Block& block, const Attention& a, const TileCoord& t) {
    const StepHost& host = block.host(a.step);
    const AttentionBlock plan = attention_block(host, block.device(a.state), a.cut(), t[1]);
    if (plan.sequence < 0 || t[2] >= plan.splits) return {};
    return {plan,
            host.pages(plan.sequence),
            host.sequence(plan.sequence)->row_begin,
            t[0] * a.block_heads,
            a.block_heads,
            a.kv_head(t[0]),
            t[2],
            (plan.row_end - plan.row_begin) * a.block_heads,
            a.window};
  }

  template <class Block>
  static void run(Block& block, const Attention& a, const TileCoord& t) {
    block.inputs();
    const Work work = work_of(block, a, t);
    if (work.queries == 0) return block.dead();
    // The rows that a tile may have decide how its products are made, not those that it has: the cut of a prompt must change no
    // bit. A sequence that answers has one row.
    const bool alone = block.host(a.step).sequence(work.plan.sequence)->row_count == 1;
    const i32 most = alone ? work.queries : a.block_rows * a.block_heads, chunk = a.chunk;
    auto view = [&](i32 n) { return block.scratch(n); };
    auto product = [&](i32 n, i32 k, DType dtype) { return block.product(most, n, k, dtype); };
    auto fragment = [&](i32 n) { return block.fragment(0, work.queries, 0, n); };
    OnChip<decltype(view(1)), decltype(product(1, 1, DType::kF32)), decltype(fragment(1))> chip{
        product(chunk, a.score_dim(), a.keys.dtype),
        product(a.value_dim(), chunk, a.values.dtype),
        fragment(chunk),
        fragment(a.value_dim()),
        view(work.queries * a.value_dim()),
        view(work.queries),
        view(work.queries),
        view(work.queries)};
    if (a.joins != 0) return run_joined(block, a, work, chip);
    add_split(block, a, work, chip);
    for (i32 q = 0; q < work.queries; ++q)
      store_split(block, a, chip, q, block.row(a.part, work.row(q), work.head(q), work.split),
                  block.row(a.stats, work.row(q), work.head(q), work.split));
  }
};

}  // namespace attention
