// Tile body of flash_attention. Included once per target, inside its namespace.
//
// A tile is some queries of all heads that share keys. Chunks of keys go on chip, counted from the first key of the sequence, so
// that the order of no sum depends on the tile:
//   1. scores: queries x keys
//   2. softmax with a running maximum: weights, and how much older sums decay
//   3. weights x values, added to the decayed sums
namespace flash_attention {

#include "heddle/ops/flash_attention/attention_scores.cuh"

template <class View, class Product, class Fragment>
struct OnChip {
  Product by_keys;          // queries [rows, D], keys [chunk, D]
  Product by_values;        // weights [rows, chunk], values [E, chunk]
  Fragment scores;          // [rows, chunk]
  Fragment values;          // [rows, E]: of the chunk
  View sums;                // [rows, E]
  View best, total, decay;  // [rows]
  View here;                // [rows]: of the chunk
};

// `Score`: a function of scores (kit/attention/score.h).
template <class Score>
struct BodyOf {
  template <class Block, class Chip>
  static void load_queries(Block& block, const FlashAttention& a, const Queries& work, Chip& chip) {
    for (i32 r = 0; r < work.rows(); ++r) {
      auto in = block.row(a.q, work.batch, work.query(r), work.head(r));
      auto query = chip.by_keys.left_row(r);
      block.map(a.q.last(), [&](auto i) { query.store(i, in.load(i)); });
    }
  }

  // The softmax begins with the sink, and with an earlier result.
  template <class Block, class Chip>
  static void begin_sums(Block& block, const FlashAttention& a, const Queries& work, Chip& chip) {
    const bool sink = a.sinks.exists(), continues = a.lse_in.exists();
    const i32 rows = work.rows(), dim = a.v.last();
    for (i32 r = 0; r < rows; ++r) {
      const float score = sink ? float(block.row(a.sinks).get(work.head(r))) : kLowest;
      chip.best.set(r, score < kUnseen ? kLowest : score);
      chip.total.set(r,
                     score < kUnseen ? 0.0f : 1.0f + (score - score));  // NaN for a sink that is not finite
      if (continues) chip.here.set(r, block.row(a.lse_in, work.batch, work.head(r)).get(work.query(r)));
    }
    block.map(rows * dim, [&](auto i) { chip.sums.store(i, 0.0f); });
    if (!continues) return;
    block.sync();
    block.map(rows, [&](auto r) {
      const auto before = chip.best.load(r), earlier = chip.here.load(r), best = max(before, earlier);
      const auto weight = weight_below(earlier, best);
      chip.total.store(r, fma(chip.total.load(r), exp(before - best), weight));
      chip.best.store(r, best);
      chip.decay.store(r, weight);
    });
    block.sync();
    for (i32 r = 0; r < rows; ++r) {
      const float weight = chip.decay.get(r);
      if (weight == 0.0f) continue;  // y_in is not read where lse_in is -inf
      auto earlier = block.row(a.y_in, work.batch, work.query(r), work.head(r));
      auto sum = chip.sums.from(r * dim);
      block.map(dim, [&](auto i) { sum.store(i, earlier.load(i) * weight); });
    }
  }

  // Products become scores. `begin`: the chunk's first key.
  template <class Block, class Chip>
  static void bend_scores(Block& block, const FlashAttention& a, const Queries& work, Chip& chip, i32 begin,
                          i32 count) {
    const float scale = score_scale(a);
    for (i32 r = 0; r < work.rows(); ++r) {
      const AttentionRange seen = from(work.keys_of(r), begin);
      const float slope = slope_of_head(block, a.alibi_slopes, work.head(r));
      const float apart = float(begin - work.position(r));
      auto score = chip.scores.row(r);
      block.map(count, [&](auto i) {
        auto x = score.load(i);
        using V = decltype(x);
        x = capped(a, x * V(scale)).score;
        const V index = block.index(i);
        if (a.alibi_slopes.exists()) x = x - abs(index + V(apart)) * V(slope);
        if (a.bias.exists())
          x = x + bias_row(block, a.bias, work.batch, work.head(r), work.query(r)).from(begin).load(i);
        if constexpr (Score::kChanges || Score::kMasks)
          x = scored(Score(a), x,
                     ScorePlace::of(work.batch, work.head(r), work.query(r),
                                    work.sequence.key_begin + begin + i32(index)))
                  .score;
        score.store(i, inside(seen, index, x, V(kLowest)));
      });
    }
    block.sync();
  }

  template <class Block, class Chip>
  static void softmax(Block& block, const Queries& work, Chip& chip, i32 count) {
    const i32 rows = work.rows();
    block.reduce_rows(chip.here, rows, count, Max(),
                      [&](i32 r, auto i) { return chip.scores.row(r).load(i); });
    block.sync();
    block.map(rows, [&](auto r) {
      const auto before = chip.best.load(r), best = max(before, chip.here.load(r));
      chip.decay.store(r, exp(before - best));
      chip.best.store(r, best);
    });
    block.sync();
    block.reduce_rows(chip.here, rows, count, Sum(), [&](i32 r, auto i) {
      auto x = chip.scores.row(r).load(i);
      using V = decltype(x);
      const V weight = weight_below(x, V(chip.best.get(r)));
      chip.by_values.left_row(r).store(i, weight);
      return weight;
    });
    block.map_rows(rows, kChunk - count,
                   [&](i32 r, auto i) { chip.by_values.left_row(r).store(i + count, 0.0f); });
    block.sync();
    block.map(rows, [&](auto r) {
      chip.total.store(r, fma(chip.total.load(r), chip.decay.load(r), chip.here.load(r)));
    });
  }

  template <class Block, class Chip>
  static void add_chunk(Block& block, const FlashAttention& a, const Queries& work, Chip& chip, i32 begin,
                        i32 count) {
    const i32 dim = a.v.last(), key = work.sequence.key_begin + begin;
    block.set_right_rows(
        chip.by_keys, 0, 0,
        Lines{block.row(a.k, work.batch, key, work.group), a.k.stride[1], count, a.q.last()});
    block.set_right_columns(chip.by_values, 0,
                            Lines{block.row(a.v, work.batch, key, work.group), a.v.stride[1], count, dim});
    block.sync();
    block.mma(chip.scores, chip.by_keys);
    block.sync();
    bend_scores(block, a, work, chip, begin, count);
    softmax(block, work, chip, count);
    block.mma(chip.values, chip.by_values);
    block.sync();
    for (i32 r = 0; r < work.rows(); ++r) {
      auto sum = chip.sums.from(r * dim);
      const float decay = chip.decay.get(r);
      block.map(dim, [&](auto i) {
        sum.store(i, fma(sum.load(i), decltype(sum.load(i))(decay), chip.values.row(r).load(i)));
      });
    }
    block.sync();
  }

  template <class Block, class Chip>
  static void store(Block& block, const FlashAttention& a, const Queries& work, Chip& chip) {
    for (i32 r = 0; r < work.rows(); ++r) {
      auto y = block.row(a.y, work.batch, work.query(r), work.head(r));
      auto sum = chip.sums.from(r * a.v.last());
      const float total = chip.total.get(r), scale = total == 0.0f ? 0.0f : 1 / total;
      block.map(a.v.last(), [&](auto i) { y.store(i, sum.load(i) * scale); });
      block.row(a.lse, work.batch, work.head(r))
          .set(work.query(r), total == 0.0f ? -kInfinity : chip.best.get(r) + natural_log(total));
    }
    block.sync();
  }

  template <class Block, class Chip>
  static void attend(Block& block, const FlashAttention& a, const Queries& work, Chip& chip) {
    load_queries(block, a, work, chip);
    begin_sums(block, a, work, chip);
    block.sync();
    each_chunk(work.list, work.all_keys(), work.mask.keys,
               [&](i32 begin, i32 count) { add_chunk(block, a, work, chip, begin, count); });
    store(block, a, work, chip);
  }

  template <class Block>
  static void run(Block& block, const FlashAttention& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.q.size[2] / a.k.size[2], most = (t[3] - t[2]) * heads, dim = a.v.last();
    auto view = [&](i32 n) { return block.scratch(n); };
    auto product = [&](i32 n, i32 k, DType dtype) { return block.product(most, n, k, dtype); };
    auto fragment = [&](i32 n) { return block.fragment(0, most, 0, n); };
    OnChip<decltype(view(1)), decltype(product(1, 1, DType::kF32)), decltype(fragment(1))> chip{
        product(kChunk, a.q.last(), a.k.dtype),
        product(dim, kChunk, a.v.dtype),
        fragment(kChunk),
        fragment(dim),
        view(most * dim),
        view(most),
        view(most),
        view(most),
        view(most)};
    const i32 sequences = a.cu_seqlens_q.exists() ? a.cu_seqlens_q.size[0] - 1 : 1;
    each_sequence(side_of(block, a.cu_seqlens_q, a.q.size[1]), side_of(block, a.cu_seqlens_k, a.k.size[1]),
                  sequences, t[2], t[3],
                  [&](i32 first, i32 last, i32 query_begin, i32 query_end, i32 key_begin, i32 key_end) {
                    const AttentionSequence s{query_begin, query_end, key_begin, key_end};
                    each_list(block, a, t, s, {first, last},
                              [&](const Queries& work) { attend(block, a, work, chip); });
                  });
  }
};

using Body = BodyOf<SameScore>;

}  // namespace flash_attention
