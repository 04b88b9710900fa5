// Tile body of mamba2_scan: some rows of a head's state go through a sequence's rows. Included once per target, inside its namespace.
namespace mamba2_scan {

#include "heddle/tile/logarithm.cuh"

constexpr i32 kRows = 16;  // rows whose inputs are prepared, and whose sums are kept, at a time

struct Body {
  template <class Block>
  static float step_of(Block& block, const Mamba2Scan& a, i32 row, i32 head) {
    const float step = softplus(block.row(a.dt, row).get(head) + block.row(a.bias).get(head));
    const float raised = step < a.least ? a.least : step;
    return a.most > 0.0f && raised > a.most ? a.most : raised;
  }

  // Each thread has the same elements of the state at every row, so that rows need no barrier between them.
  template <class Block>
  static void run(Block& block, const Mamba2Scan& a, const TileCoord& t) {
    block.inputs();
    const StepHost& host = block.host(a.step);
    const i32 s = t[0], head = t[1], part = t[2], count = t[3] - t[2], dim = a.state_dim();
    if (s >= host.sequences) return block.dead();
    const StepSequence& sequence = *host.sequence(s);
    const i32 first = sequence.row_begin, last = first + sequence.row_count;
    const i32 start = block.device(a.state).position()[first];
    auto states = block.scratch(count * dim);
    auto written = block.scratch(kRows * count), sums = block.scratch(kRows * count);
    const auto place = [&](i32 position) { return 2 * sequence.slot + position % 2; };
    block.map_rows(count, dim, [&](i32 m, auto i) {
      auto to = states.from(m * dim);
      if (start == 0) return to.store(i, block.index(i) * 0.0f);
      to.store(i, block.row(a.memory, place(start - 1), head, part + m).load(i));
    });
    const float rate = -exp(block.row(a.rate).get(head)), skip = block.row(a.skip).get(head);
    const i32 column = a.value_column(head) + part;
    for (i32 begin = first; begin < last; begin += kRows) {
      const i32 rows = last - begin < kRows ? last - begin : kRows;
      block.map_rows(rows, count, [&](i32 m, auto i) {
        const float step = step_of(block, a, begin + m, head);
        written.from(m * count).store(i, block.row(a.x, begin + m).from(column).load(i) * step);
      });
      block.sync();
      for (i32 m = 0; m < rows; ++m) {
        auto x = block.row(a.x, begin + m);
        auto b = x.from(a.b_column(head)), c = x.from(a.c_column(head));
        const float decay = exp(rate * step_of(block, a, begin + m, head));
        block.reduce_rows(sums.from(m * count), count, dim, Sum(), [&](i32 n, auto i) {
          auto row = states.from(n * dim);
          const auto state = row.load(i) * decay + b.load(i) * written.get(m * count + n);
          row.store(i, state);
          return state * c.load(i);
        });
      }
      block.sync();
      block.map_rows(rows, count, [&](i32 m, auto i) {
        const auto x = block.row(a.x, begin + m).from(column).load(i);
        block.row(a.y, begin + m).from(column).store(i, sums.from(m * count).load(i) + x * skip);
      });
    }
    block.map_rows(count, dim, [&](i32 m, auto i) {
      block.row(a.memory, place(start + last - first - 1), head, part + m)
          .store(i, states.from(m * dim).load(i));
    });
  }
};

}  // namespace mamba2_scan
