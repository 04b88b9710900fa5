// Tile body of power_attention: for 64 keys at a time, scores, weights, and weights times values. Included once per target,
// inside its namespace.
namespace power_attention {

#include "heddle/ops/sympow/power_attention_rows.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const PowerAttention& a, const TileCoord& t) {
    block.inputs();
    const Head head(a.q, t);
    const i32 begin = a.tiles().begin(t[1]), rows = a.tiles().end(t[1]) - begin, end = begin + rows;
    const i32 dim = a.q.size[3], columns = a.v.size[3];
    auto by_keys = block.product(rows, kChunkRows, dim, a.k.dtype);
    auto by_values = block.product(rows, columns, kChunkRows, a.v.dtype);
    auto scores = block.fragment(0, rows, 0, kChunkRows);
    auto part = block.fragment(0, rows, 0, columns);
    auto sums = block.scratch(rows * columns), total = block.scratch(rows), more = block.scratch(rows);
    auto row_gates = block.scratch(rows), gates = block.scratch(kChunkRows);
    head.load_gates(block, a.l, begin, rows, row_gates);
    block.map_rows(rows, dim, [&](i32 m, auto i) {
      by_keys.left_row(m).store(i, head.row(block, a.q, begin + m).load(i) * a.scale);
    });
    block.sync();
    add_past(block, a, {head, begin, rows}, row_gates, sums, total);
    for (i32 first = a.tiles().chunk_begin(a.tiles().chunk_of(t[1])); first < end; first += kChunkRows) {
      const i32 keys = end - first < kChunkRows ? end - first : kChunkRows;
      block.set_right_rows(by_keys, 0, 0, head.lines(block, a.k, first, keys));
      block.set_right_columns(by_values, 0, head.lines(block, a.v, first, keys));
      head.load_gates(block, a.l, first, keys, gates);
      block.sync();
      block.mma(scores, by_keys);
      block.sync();
      block.map_rows(rows, kChunkRows, [&](i32 m, auto s) {
        using Value = decltype(scores.row(m).load(s));
        const i32 seen = begin + m + 1 - first < keys ? begin + m + 1 - first : keys;
        const Value decay = exp(Value(row_gates.get(m)) - gates.load(s));
        const Value weight = where_less(Value(block.index(s)), Value(float(seen)),
                                        raise(a.power, scores.row(m).load(s)) * decay, Value(0.0f));
        scores.row(m).store(s, weight);
        by_values.left_row(m).store(s, weight);
      });
      block.sync();
      block.reduce_rows(more, rows, kChunkRows, Sum(), [&](i32 m, auto s) { return scores.row(m).load(s); });
      block.mma(part, by_values);
      block.sync();
      block.map(rows, [&](auto m) { total.store(m, total.load(m) + more.load(m)); });
      block.map_rows(rows, columns, [&](i32 m, auto i) {
        auto sum = sums.from(m * columns);
        sum.store(i, sum.load(i) + part.row(m).load(i));
      });
      block.sync();
    }
    finish(block, a, head, begin, rows, sums, total);
  }

  // Begins the sums with what the past gives.
  template <class Block, class View>
  static void add_past(Block& block, const PowerAttention& a, const HeadRows& at, View gates, View sums,
                       View total) {
    const i32 begin = at.begin, rows = at.count;
    const Head& head = at.head;
    const i32 columns = a.v.size[3];
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      auto sum = sums.from(m * columns);
      if (!a.past.exists()) return sum.store(i, block.index(i) * 0.0f);
      sum.store(i, head.row(block, a.past, begin + m).load(i) * past_factor(a.power, a.scale, gates.get(m)));
    });
    block.map(rows, [&](auto m) { total.store(m, block.index(m) * 0.0f); });
    block.sync();
    if (!a.past.exists() || !a.normalise) return;
    for (i32 m = 0; m < rows; ++m)
      total.set(
          m, head.row(block, a.past, begin + m).get(columns) * past_factor(a.power, a.scale, gates.get(m)));
    block.sync();
  }

  template <class Block, class View>
  static void finish(Block& block, const PowerAttention& a, const Head& head, i32 begin, i32 rows, View sums,
                     View total) {
    const i32 columns = a.v.size[3];
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      const float factor = a.normalise ? 1.0f / (total.get(m) + a.eps) : 1.0f;
      head.row(block, a.y, begin + m).store(i, sums.from(m * columns).load(i) * factor);
    });
    auto out = head.times(block, a.total, begin);
    block.map(rows, [&](auto m) { out.store(m, total.load(m)); });
  }
};

}  // namespace power_attention
