// Tile body of delta_rule: some rows of a head's state go through a sequence's rows. Included once per target, inside its namespace.
namespace delta_rule {

#include "heddle/tile/logarithm.cuh"

constexpr i32 kRows = 16;  // prepared at a time

struct Body {
  // Rows that are prepared together.
  struct Rows {
    i32 begin, count;
  };
  // Their vectors from `column` on, of length `scale`.
  template <class Block, class View>
  static void load_units(Block& block, const DeltaRule& a, Rows rows, i32 column, float scale, View units) {
    const i32 dim = a.key_dim();
    auto sums = units.from(kRows * dim);
    const auto at = [&](i32 m) { return block.row(a.x, rows.begin + m).from(column); };
    block.reduce_rows(sums, rows.count, dim, Sum(),
                      [&](i32 m, auto i) { return at(m).load(i) * at(m).load(i); });
    block.sync();
    block.map_rows(rows.count, dim, [&](i32 m, auto i) {
      units.from(m * dim).store(i, at(m).load(i) * (scale * rsqrt(sums.get(m) + a.eps)));
    });
    block.sync();
  }

  template <class Block>
  static void run(Block& block, const DeltaRule& a, const TileCoord& t) {
    block.inputs();
    const StepHost& host = block.host(a.step);
    const i32 s = t[0], head = t[1], part = t[2], count = t[3] - t[2], dim = a.key_dim(), heads = a.heads();
    if (s >= host.sequences) return block.dead();
    const StepSequence& sequence = *host.sequence(s);
    const i32 first = sequence.row_begin, last = first + sequence.row_count;
    const i32 start = block.device(a.state).position()[first];
    auto states = block.scratch(count * dim), found = block.scratch(count);
    auto keys = block.scratch(kRows * (dim + 1)), queries = block.scratch(kRows * (dim + 1));
    const auto place = [&](i32 position) { return 2 * sequence.slot + position % 2; };
    block.map_rows(count, dim, [&](i32 m, auto i) {
      auto to = states.from(m * dim);
      if (start == 0) return to.store(i, block.index(i) * 0.0f);
      to.store(i, block.row(a.memory, place(start - 1), head, part + m).load(i));
    });
    const float scale = 1.0f / sqrt(float(dim)), rate = -exp(block.row(a.rate).get(head));
    for (i32 begin = first; begin < last; begin += kRows) {
      const i32 rows = last - begin < kRows ? last - begin : kRows;
      load_units(block, a, {begin, rows}, a.key_column(head), 1.0f, keys);
      load_units(block, a, {begin, rows}, a.query_column(head), scale, queries);
      for (i32 m = 0; m < rows; ++m) {
        auto gates = block.row(a.gates, begin + m);
        auto key = keys.from(m * dim), query = queries.from(m * dim);
        const float beta = sigmoid(gates.get(head));
        const float decay = exp(rate * softplus(gates.get(heads + head) + block.row(a.bias).get(head)));
        auto values = block.row(a.x, begin + m).from(a.value_column(head) + part);
        block.reduce_rows(found, count, dim, Sum(),
                          [&](i32 n, auto i) { return states.from(n * dim).load(i) * key.load(i); });
        block.sync();
        block.map(count, [&](auto n) { found.store(n, (values.load(n) - found.load(n) * decay) * beta); });
        block.sync();
        block.map_rows(count, dim, [&](i32 n, auto i) {
          auto row = states.from(n * dim);
          row.store(i, row.load(i) * decay + key.load(i) * found.get(n));
        });
        block.sync();
        block.reduce_rows(block.row(a.y, begin + m).from(head * a.value_dim() + part), count, dim, Sum(),
                          [&](i32 n, auto i) { return states.from(n * dim).load(i) * query.load(i); });
      }
      block.sync();
    }
    block.map_rows(count, dim, [&](i32 m, auto i) {
      block.row(a.memory, place(start + last - first - 1), head, part + m)
          .store(i, states.from(m * dim).load(i));
    });
  }
};

}  // namespace delta_rule
