// Tile body of flash_attention_backward. Included once per target, inside its namespace.
//
// A tile makes dq of some queries and dk and dv of as many keys. Scores are made again for both, so that no tile adds to what
// another one has written. Chunks of the other side go on chip, counted from the first of the sequence.
namespace flash_attention_backward {

#include "heddle/ops/flash_attention/attention_pairs.cuh"

template <class View, class Product, class Fragment>
struct OnChip {
  Pieces<Product, Fragment> pieces;
  Product by_scores;           // gradients of scores [rows, chunk], keys or queries [D, chunk]
  Product by_weights;          // weights [rows, chunk], dy [E, chunk]
  Fragment made, made_values;  // [rows, D], [rows, E]: of the chunk
  View sums, value_sums;       // [rows, D], [rows, E]
};

// `Score`: a function of scores (kit/attention/score.h).
template <class Score>
struct BodyOf {
  template <class Block, class View, class Fragment>
  static void add(Block& block, View sums, const Fragment& made, i32 rows, i32 dim) {
    for (i32 r = 0; r < rows; ++r) {
      auto sum = sums.from(r * dim);
      block.map(dim, [&](auto i) { sum.store(i, sum.load(i) + made.row(r).load(i)); });
    }
  }

  template <class Block, class View, class Row>
  static void store(Block& block, View sum, Row to, i32 dim, float scale) {
    block.map(dim, [&](auto i) { to.store(i, sum.load(i) * scale); });
  }

  template <class Block, class Chip>
  static void queries(Block& block, const FlashAttentionBackward& a, const Queries& work, Chip& chip) {
    const i32 rows = work.rows(), dim = a.q.last();
    load_queries(block, a, work, chip.pieces);
    block.map(rows * dim, [&](auto i) { chip.sums.store(i, 0.0f); });
    block.sync();
    each_chunk(work.list, work.all_keys(), work.mask.keys, [&](i32 begin, i32 count) {
      const i32 key = work.sequence.key_begin + begin;
      load_keys(block, a, work.batch, work.group, key, count, chip.pieces);
      block.set_right_columns(chip.by_scores, 0,
                              Lines{block.row(a.k, work.batch, key, work.group), a.k.stride[1], count, dim});
      multiply(block, chip.pieces);
      for (i32 r = 0; r < rows; ++r) {
        auto line = chip.by_scores.left_row(r);
        of_query<Score>(block, a, work, chip.pieces, r, AttentionRange{begin, begin + count},
                        [&](auto i, auto, auto ds, auto slope) { line.store(i, ds * slope); });
      }
      block.map_rows(rows, kChunk - count,
                     [&](i32 r, auto i) { chip.by_scores.left_row(r).store(i + count, 0.0f); });
      block.sync();
      block.mma(chip.made, chip.by_scores);
      block.sync();
      add(block, chip.sums, chip.made, rows, dim);
      block.sync();
    });
    for (i32 r = 0; r < rows; ++r)
      store(block, chip.sums.from(r * dim), block.row(a.dq, work.batch, work.query(r), work.head(r)), dim,
            score_scale(a));
    block.sync();
  }

  // The queries [begin, begin + count) of the sequence, which one head has.
  template <class Block, class Chip>
  static void add_queries(Block& block, const FlashAttentionBackward& a, const Keys& work, Chip& chip,
                          AttentionRange chunk) {
    const i32 rows = work.rows(), query = work.sequence.query_begin + chunk.begin,
              count = chunk.end - chunk.begin;
    const Lines q{block.row(a.q, work.batch, query, work.head), a.q.stride[1], count, a.q.last()};
    const Lines dy{block.row(a.dy, work.batch, query, work.head), a.dy.stride[1], count, a.v.last()};
    block.set_right_rows(chip.pieces.by_keys, 0, 0, q);
    block.set_right_rows(chip.pieces.by_values, 0, 0, dy);
    block.set_right_columns(chip.by_scores, 0, q);
    block.set_right_columns(chip.by_weights, 0, dy);
    multiply(block, chip.pieces);
    for (i32 r = 0; r < rows; ++r) {
      auto line = chip.by_scores.left_row(r), weights = chip.by_weights.left_row(r);
      of_key<Score>(block, a, work, chip.pieces, r, chunk, [&](auto i, auto p, auto ds, auto slope) {
        line.store(i, ds * slope);
        weights.store(i, p);
      });
    }
    block.map_rows(rows, kChunk - count, [&](i32 r, auto i) {
      chip.by_scores.left_row(r).store(i + count, 0.0f);
      chip.by_weights.left_row(r).store(i + count, 0.0f);
    });
    block.sync();
    block.mma(chip.made, chip.by_scores);
    block.mma(chip.made_values, chip.by_weights);
    block.sync();
    add(block, chip.sums, chip.made, rows, a.q.last());
    add(block, chip.value_sums, chip.made_values, rows, a.v.last());
    block.sync();
  }

  template <class Block, class Chip>
  static void keys(Block& block, const FlashAttentionBackward& a, Keys work, Chip& chip) {
    const i32 rows = work.rows(), dim = a.q.last(), value_dim = a.v.last();
    for (i32 r = 0; r < rows; ++r) {
      auto k = block.row(a.k, work.batch, work.key(r), work.group),
           v = block.row(a.v, work.batch, work.key(r), work.group);
      auto key = chip.pieces.by_keys.left_row(r), value = chip.pieces.by_values.left_row(r);
      block.map(dim, [&](auto i) { key.store(i, k.load(i)); });
      block.map(value_dim, [&](auto i) { value.store(i, v.load(i)); });
    }
    block.map(rows * dim, [&](auto i) { chip.sums.store(i, 0.0f); });
    block.map(rows * value_dim, [&](auto i) { chip.value_sums.store(i, 0.0f); });
    block.sync();
    const AttentionRange seen{work.queries_of(0).begin, work.queries_of(rows - 1).end};
    for (work.head = work.group * work.heads; work.head < (work.group + 1) * work.heads; ++work.head)
      each_chunk(list_of(block, a.q_num_blocks, a.q_indices, work.batch, work.head, work.first / a.block_k,
                         a.block_q),
                 seen, work.mask.queries, [&](i32 begin, i32 count) {
                   add_queries(block, a, work, chip, {begin, begin + count});
                 });
    for (i32 r = 0; r < rows; ++r) {
      store(block, chip.sums.from(r * dim), block.row(a.dk, work.batch, work.key(r), work.group), dim,
            score_scale(a));
      store(block, chip.value_sums.from(r * value_dim), block.row(a.dv, work.batch, work.key(r), work.group),
            value_dim, 1);
    }
    block.sync();
  }

  template <class Block>
  static void run(Block& block, const FlashAttentionBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.q.size[2] / a.k.size[2], size = t[3] - t[2], most = size * heads;
    const i32 dim = a.q.last(), value_dim = a.v.last();
    auto view = [&](i32 n) { return block.scratch(n); };
    auto product = [&](i32 n, i32 k, DType dtype) { return block.product(most, n, k, dtype); };
    auto fragment = [&](i32 n) { return block.fragment(0, most, 0, n); };
    using Product = decltype(product(1, 1, DType::kF32));
    OnChip<decltype(view(1)), Product, decltype(fragment(1))> chip{
        {product(kChunk, dim, DType::kF32), product(kChunk, value_dim, DType::kF32), fragment(kChunk),
         fragment(kChunk)},
        product(dim, kChunk, DType::kF32),
        product(value_dim, kChunk, DType::kF32),
        fragment(dim),
        fragment(value_dim),
        view(most * dim),
        view(most * value_dim)};
    const Side query_side = side_of(block, a.cu_seqlens_q, a.q.size[1]),
               key_side = side_of(block, a.cu_seqlens_k, a.k.size[1]);
    const i32 sequences = a.cu_seqlens_q.exists() ? a.cu_seqlens_q.size[0] - 1 : 1;
    const auto end = [&](const Side& side) { return t[3] < side.size ? t[3] : side.size; };
    each_sequence(query_side, key_side, sequences, t[2], end(query_side),
                  [&](i32 first, i32 last, i32 begin, i32 query_end, i32 key_begin, i32 key_end) {
                    const AttentionSequence s{begin, query_end, key_begin, key_end};
                    each_list(block, a, t, s, {first, last},
                              [&](const Queries& work) { queries(block, a, work, chip); });
                  });
    each_sequence(key_side, query_side, sequences, t[2], end(key_side),
                  [&](i32 first, i32 last, i32 begin, i32 key_end, i32 query_begin, i32 query_end) {
                    const AttentionSequence s{query_begin, query_end, begin, key_end};
                    for (i32 to; first < last; first = to) {
                      to = part_end(first, last, a.q_num_blocks.exists() ? a.block_k : 0);
                      keys(block, a, Keys{s, attention_mask(a, s), t[0], t[1], heads, first, to, 0}, chip);
                    }
                  });
  }
};

using Body = BodyOf<SameScore>;

}  // namespace flash_attention_backward
