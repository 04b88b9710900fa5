// Tile body of power_attention_keys_backward: for 64 queries at a time, from those of the tile on, everything transposed:
// keys are the rows. Included once per target, inside its namespace.
namespace power_attention_keys_backward {

#include "heddle/ops/sympow/power_attention_rows.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const PowerAttentionKeysBackward& a, const TileCoord& t) {
    block.inputs();
    const Head head(a.q, t);
    const i32 begin = a.tiles().begin(t[1]), keys = a.tiles().end(t[1]) - begin;
    const i32 end = a.tiles().chunk_end(a.tiles().chunk_of(t[1])), dim = a.q.size[3], columns = a.v.size[3];
    auto by_queries = block.product(keys, kChunkRows, dim, a.q.dtype);      // keys, queries
    auto by_given = block.product(keys, kChunkRows, columns, a.dy.dtype);   // values, dy
    auto to_keys = block.product(keys, dim, kChunkRows, a.q.dtype);         // gradients of scores, queries
    auto to_values = block.product(keys, columns, kChunkRows, a.dy.dtype);  // weights, dy
    auto scores = block.fragment(0, keys, 0, kChunkRows), weights = block.fragment(0, keys, 0, kChunkRows);
    auto key_part = block.fragment(0, keys, 0, dim), value_part = block.fragment(0, keys, 0, columns);
    auto key_sums = block.scratch(keys * dim), value_sums = block.scratch(keys * columns);
    auto gate_sums = block.scratch(keys), more = block.scratch(keys), key_gates = block.scratch(keys);
    auto gates = block.scratch(kChunkRows);
    auto inverse = block.scratch(kChunkRows), of_total = block.scratch(kChunkRows);
    head.load_gates(block, a.l, begin, keys, key_gates);
    auto rows_part = head.times(block, a.dl_rows, begin);
    block.map(keys, [&](auto n) { gate_sums.store(n, rows_part.load(n)); });
    block.map_rows(keys, dim, [&](i32 n, auto i) {
      by_queries.left_row(n).store(i, head.row(block, a.k, begin + n).load(i) * a.scale);
      key_sums.from(n * dim).store(i, block.index(i) * 0.0f);
    });
    block.map_rows(keys, columns, [&](i32 n, auto i) {
      by_given.left_row(n).store(i, head.row(block, a.v, begin + n).load(i));
      value_sums.from(n * columns).store(i, block.index(i) * 0.0f);
    });
    block.sync();
    for (i32 first = begin; first < end; first += kChunkRows) {
      const i32 rows = end - first < kChunkRows ? end - first : kChunkRows;
      block.set_right_rows(by_queries, 0, 0, head.lines(block, a.q, first, rows));
      block.set_right_rows(by_given, 0, 0, head.lines(block, a.dy, first, rows));
      block.set_right_columns(to_keys, 0, head.lines(block, a.q, first, rows));
      block.set_right_columns(to_values, 0, head.lines(block, a.dy, first, rows));
      head.load_gates(block, a.l, first, rows, gates);
      row_gradients(block, a, head, first, rows, inverse, of_total);
      block.sync();
      block.mma(scores, by_queries);
      block.mma(weights, by_given);
      block.sync();
      block.map_rows(keys, kChunkRows, [&](i32 n, auto s) {
        using Value = decltype(scores.row(n).load(s));
        const Value index(block.index(s)), score = scores.row(n).load(s);
        const Value decay = exp(gates.load(s) - key_gates.get(n));
        const Value given = (weights.row(n).load(s) * inverse.load(s) + of_total.load(s)) * decay;
        const auto masked = [&](Value value) {
          const Value none(0.0f), of_rows = where_less(index, Value(float(rows)), value, none);
          return where_less(index, Value(float(begin + n - first)), none, of_rows);
        };
        to_keys.left_row(n).store(s, masked(given * slope(a.power, score)));
        to_values.left_row(n).store(s, masked(raise(a.power, score) * decay * inverse.load(s)));
        weights.row(n).store(s, masked(given * raise(a.power, score)));
      });
      block.sync();
      block.reduce_rows(more, keys, kChunkRows, Sum(), [&](i32 n, auto s) { return weights.row(n).load(s); });
      block.mma(key_part, to_keys);
      block.mma(value_part, to_values);
      block.sync();
      block.map(keys, [&](auto n) { gate_sums.store(n, gate_sums.load(n) - more.load(n)); });
      add(block, key_sums, key_part);
      add(block, value_sums, value_part);
      block.sync();
    }
    block.map_rows(keys, dim, [&](i32 n, auto i) {
      head.row(block, a.dk, begin + n).store(i, key_sums.from(n * dim).load(i) * a.scale);
    });
    block.map_rows(keys, columns, [&](i32 n, auto i) {
      head.row(block, a.dv, begin + n).store(i, value_sums.from(n * columns).load(i));
    });
    auto out = head.times(block, a.dl, begin);
    block.map(keys, [&](auto n) { out.store(n, gate_sums.load(n)); });
  }

  template <class Block, class View, class Fragment>
  static void add(Block& block, View sums, const Fragment& part) {
    block.map_rows(part.rows, part.cols, [&](i32 m, auto i) {
      auto sum = sums.from(m * part.cols);
      sum.store(i, sum.load(i) + part.row(m).load(i));
    });
  }
};

}  // namespace power_attention_keys_backward
