// Tile body of power_attention_backward: for 64 keys at a time, scores, gradients of weights, and these times the keys.
// Included once per target, inside its namespace.
namespace power_attention_backward {

#include "heddle/ops/sympow/power_attention_rows.cuh"

// A value of each row.
template <class View>
struct RowFactors {
  View gates, inverse, of_total;
};
template <class View>
RowFactors(View, View, View) -> RowFactors<View>;

struct Body {
  template <class Block>
  static void run(Block& block, const PowerAttentionBackward& a, const TileCoord& t) {
    block.inputs();
    const Head head(a.q, t);
    const i32 begin = a.tiles().begin(t[1]), rows = a.tiles().end(t[1]) - begin, end = begin + rows;
    const i32 dim = a.q.size[3], columns = a.v.size[3];
    auto by_keys = block.product(rows, kChunkRows, dim, a.k.dtype);
    auto by_values = block.product(rows, kChunkRows, columns, a.v.dtype);
    auto by_scores = block.product(rows, dim, kChunkRows, a.k.dtype);
    auto scores = block.fragment(0, rows, 0, kChunkRows), weights = block.fragment(0, rows, 0, kChunkRows);
    auto part = block.fragment(0, rows, 0, dim);
    auto sums = block.scratch(rows * dim), gate_sums = block.scratch(rows), more = block.scratch(rows);
    auto row_gates = block.scratch(rows), gates = block.scratch(kChunkRows);
    auto inverse = block.scratch(rows), of_total = block.scratch(rows);
    head.load_gates(block, a.l, begin, rows, row_gates);
    row_gradients(block, a, head, begin, rows, inverse, of_total);
    block.sync();
    block.map_rows(rows, dim, [&](i32 m, auto i) {
      by_keys.left_row(m).store(i, head.row(block, a.q, begin + m).load(i) * a.scale);
      sums.from(m * dim).store(i, block.index(i) * 0.0f);
    });
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      by_values.left_row(m).store(i, head.row(block, a.dy, begin + m).load(i) * inverse.get(m));
    });
    begin_gates(block, a, {head, begin, rows}, RowFactors{row_gates, inverse, of_total}, more, gate_sums);
    for (i32 first = a.tiles().chunk_begin(a.tiles().chunk_of(t[1])); first < end; first += kChunkRows) {
      const i32 keys = end - first < kChunkRows ? end - first : kChunkRows;
      block.set_right_rows(by_keys, 0, 0, head.lines(block, a.k, first, keys));
      block.set_right_rows(by_values, 0, 0, head.lines(block, a.v, first, keys));
      block.set_right_columns(by_scores, 0, head.lines(block, a.k, first, keys));
      head.load_gates(block, a.l, first, keys, gates);
      block.sync();
      block.mma(scores, by_keys);
      block.mma(weights, by_values);
      block.sync();
      block.map_rows(rows, kChunkRows, [&](i32 m, auto s) {
        using Value = decltype(scores.row(m).load(s));
        const i32 seen = begin + m + 1 - first < keys ? begin + m + 1 - first : keys;
        const Value score = scores.row(m).load(s);
        const Value given =
            (weights.row(m).load(s) + of_total.get(m)) * exp(Value(row_gates.get(m)) - gates.load(s));
        const auto masked = [&](Value value) {
          return where_less(Value(block.index(s)), Value(float(seen)), value, Value(0.0f));
        };
        by_scores.left_row(m).store(s, masked(given * slope(a.power, score)));
        weights.row(m).store(s, masked(given * raise(a.power, score)));
      });
      block.sync();
      block.reduce_rows(more, rows, kChunkRows, Sum(), [&](i32 m, auto s) { return weights.row(m).load(s); });
      block.mma(part, by_scores);
      block.sync();
      block.map(rows, [&](auto m) { gate_sums.store(m, gate_sums.load(m) + more.load(m)); });
      block.map_rows(rows, dim, [&](i32 m, auto i) {
        auto sum = sums.from(m * dim);
        sum.store(i, sum.load(i) + part.row(m).load(i));
      });
      block.sync();
    }
    block.map_rows(rows, dim, [&](i32 m, auto i) {
      head.row(block, a.dq, begin + m).store(i, sums.from(m * dim).load(i) * a.scale);
    });
    auto out = head.times(block, a.dl_rows, begin);
    block.map(rows, [&](auto m) { out.store(m, gate_sums.load(m)); });
  }

  // sums = the part of the past in the gradient of a row's gates. `work` has a value for each row.
  template <class Block, class View>
  static void begin_gates(Block& block, const PowerAttentionBackward& a, const HeadRows& at,
                          const RowFactors<View>& rows_have, View work, View sums) {
    const i32 begin = at.begin, rows = at.count;
    const Head& head = at.head;
    block.sync();
    if (!a.past.exists()) {
      block.map(rows, [&](auto m) { sums.store(m, block.index(m) * 0.0f); });
      return block.sync();
    }
    const i32 columns = a.v.size[3];
    block.reduce_rows(work, rows, columns, Sum(), [&](i32 m, auto i) {
      return head.row(block, a.dy, begin + m).load(i) * head.row(block, a.past, begin + m).load(i);
    });
    block.sync();
    for (i32 m = 0; m < rows; ++m) {
      float sum = work.get(m) * rows_have.inverse.get(m);
      if (a.normalise) sum += rows_have.of_total.get(m) * head.row(block, a.past, begin + m).get(columns);
      sums.set(m, sum * past_factor(a.power, a.scale, rows_have.gates.get(m)));
    }
    block.sync();
  }
};

}  // namespace power_attention_backward
