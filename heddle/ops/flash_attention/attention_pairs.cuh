// Pairs of queries and keys in the gradients of flash_attention: scores again, their weights, and the gradients of the scores.
// Included inside the namespace of each backward body of the family.
#include "heddle/ops/flash_attention/attention_scores.cuh"

// Rows are queries and columns keys, or the other way round.
template <class Product, class Fragment>
struct Pieces {
  Product by_keys;    // q [rows, D], k [chunk, D]
  Product by_values;  // dy [rows, E], v [chunk, E]
  Fragment scores;    // [rows, chunk]: q k
  Fragment given;     // [rows, chunk]: dy v
};

// A pair: q k, what is added to its capped score, lse and delta of the query, and dy v.
template <class V>
struct PairValues {
  V dot, bias, lse, delta, given;
};

// use(i, p, ds, slope of the score). `seen`: the indices that count. `place_of` an index: the pair's.
template <class Score, class Args, class Index, class Use, class V, class PlaceOf>
inline void use_pair(const Args& a, AttentionRange seen, Index i, V index, const PairValues<V>& pair,
                     PlaceOf&& place_of, Use&& use) {
  const Capped<V> x = capped(a, pair.dot * V(score_scale(a)));
  if constexpr (Score::kChanges || Score::kMasks) {
    const Scored own = scored(Score(a), x.score + pair.bias, place_of(i32(index)));
    const V p = inside(seen, index, weight_below(V(own.score), pair.lse), V(0.0f));
    return use(i, p, p * (pair.given - pair.delta), x.slope * own.slope);
  }
  const V p = inside(seen, index, weight_below(x.score + pair.bias, pair.lse), V(0.0f));
  use(i, p, p * (pair.given - pair.delta), x.slope);
}

struct Keys {
  AttentionSequence sequence;
  AttentionMask mask;
  i32 batch, group, heads;
  i32 first, last;
  i32 head;  // whose queries are on chip

  i32 rows() const { return last - first; }
  i32 key(i32 row) const { return first + row; }
  AttentionRange queries_of(i32 row) const { return mask.queries_of(key(row) - sequence.key_begin); }
};

template <class Block, class Args, class Chip>
void load_queries(Block& block, const Args& a, const Queries& work, Chip& chip) {
  for (i32 r = 0; r < work.rows(); ++r) {
    auto q = block.row(a.q, work.batch, work.query(r), work.head(r)),
         dy = block.row(a.dy, work.batch, work.query(r), work.head(r));
    auto query = chip.by_keys.left_row(r), given = chip.by_values.left_row(r);
    block.map(a.q.last(), [&](auto i) { query.store(i, q.load(i)); });
    block.map(a.v.last(), [&](auto i) { given.store(i, dy.load(i)); });
  }
}

template <class Block, class Args, class Chip>
void load_keys(Block& block, const Args& a, i32 batch, i32 group, i32 key, i32 count, Chip& chip) {
  block.set_right_rows(chip.by_keys, 0, 0,
                       Lines{block.row(a.k, batch, key, group), a.k.stride[1], count, a.q.last()});
  block.set_right_rows(chip.by_values, 0, 0,
                       Lines{block.row(a.v, batch, key, group), a.v.stride[1], count, a.v.last()});
}

template <class Block, class Chip>
void multiply(Block& block, Chip& chip) {
  block.sync();
  block.mma(chip.scores, chip.by_keys);
  block.mma(chip.given, chip.by_values);
  block.sync();
}

// Calls use(i, p, ds, slope) for a query's row and each key of a chunk.
template <class Score, class Block, class Args, class Chip, class Use>
void of_query(Block& block, const Args& a, const Queries& work, const Chip& chip, i32 r, AttentionRange chunk,
              Use&& use) {
  const AttentionRange seen = from(work.keys_of(r), chunk.begin);
  const i32 head = work.head(r), query = work.query(r);
  const float lse = block.row(a.lse, work.batch, head).get(query),
              delta = block.row(a.delta, work.batch, head).get(query);
  const float slope = slope_of_head(block, a.alibi_slopes, head),
              apart = float(chunk.begin - work.position(r));
  auto score = chip.scores.row(r), given = chip.given.row(r);
  block.map(chunk.end - chunk.begin, [&](auto i) {
    auto dot = score.load(i);
    using V = decltype(dot);
    const V index = block.index(i);
    V bias(0.0f);
    if (a.alibi_slopes.exists()) bias = bias - abs(index + V(apart)) * V(slope);
    if (a.bias.exists())
      bias = bias + bias_row(block, a.bias, work.batch, head, query).from(chunk.begin).load(i);
    use_pair<Score>(
        a, seen, i, index, PairValues<V>{dot, bias, V(lse), V(delta), V(given.load(i))},
        [&](i32 at) {
          return ScorePlace::of(work.batch, head, query, work.sequence.key_begin + chunk.begin + at);
        },
        use);
  });
}

// Calls use(i, p, ds, slope) for a key's row and each query of a chunk, of one head.
template <class Score, class Block, class Args, class Chip, class Use>
void of_key(Block& block, const Args& a, const Keys& work, const Chip& chip, i32 r, AttentionRange chunk,
            Use&& use) {
  const AttentionRange seen = from(work.queries_of(r), chunk.begin);
  const i32 head = work.head, key = work.key(r) - work.sequence.key_begin,
            query = work.sequence.query_begin + chunk.begin;
  const auto lse = block.row(a.lse, work.batch, head).from(query),
             delta = block.row(a.delta, work.batch, head).from(query);
  const float slope = slope_of_head(block, a.alibi_slopes, head);
  const float apart = float(work.mask.position(chunk.begin) - key);
  auto score = chip.scores.row(r), given = chip.given.row(r);
  block.map(chunk.end - chunk.begin, [&](auto i) {
    auto dot = score.load(i);
    using V = decltype(dot);
    const V index = block.index(i);
    V bias(0.0f);
    if (a.alibi_slopes.exists()) bias = bias - abs(index + V(apart)) * V(slope);
    if (a.bias.exists())
      bias =
          bias + bias_row(block, a.bias, work.batch, head, query).from(key).every(a.bias.stride[2]).load(i);
    use_pair<Score>(
        a, seen, i, index, PairValues<V>{dot, bias, V(lse.load(i)), V(delta.load(i)), V(given.load(i))},
        [&](i32 at) { return ScorePlace::of(work.batch, head, query + at, work.key(r)); }, use);
  });
}
