// Tile body of state_scan_backward: chunk by chunk from the last, with the gradient of the state on chip. Included once per
// target, inside its namespace.
namespace state_scan_backward {

#include "heddle/ops/sympow/chunk_decays.cuh"

constexpr i32 kRows = 64;  // a tile has so many at most

struct Body {
  template <class Block>
  static void run(Block& block, const StateScanBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.s.size[1], b = t[0] / heads, h = t[0] % heads, width = a.width();
    const i32 first = t[1] * kRows, rows = width - first < kRows ? width - first : kRows;
    const i32 columns = a.s.size[3];
    auto decays = block.scratch(a.chunks), given = block.scratch(rows * columns), sums = block.scratch(rows);
    load_decays(block, a.l, a.chunk, a.chunks, b, h, decays);
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      given.from(m * columns).store(i, block.row(a.dlast, b, h, first + m).load(i));
    });
    block.sync();
    for (i32 g = a.chunks - 1; g >= 0; --g) {
      const auto row = [&](const Tensor& tensor, i32 m) {
        return block.row(tensor, b, h, g * width + first + m);
      };
      block.reduce_rows(sums, rows, columns, Sum(),
                        [&](i32 m, auto i) { return row(a.s, m).load(i) * given.from(m * columns).load(i); });
      block.sync();
      const float sum = block.reduce(rows, Sum(), [&](auto i) { return sums.load(i); });
      block.row(a.part, b, h, g).set(t[1], sum);
      block.map_rows(rows, columns, [&](i32 m, auto i) {
        auto here = given.from(m * columns);
        const auto value = here.load(i);
        row(a.du, m).store(i, value);
        here.store(i, row(a.ds, m).load(i) + value * decays.get(g));
      });
      block.sync();
    }
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      block.row(a.ds0, b, h, first + m).store(i, given.from(m * columns).load(i));
    });
  }
};

}  // namespace state_scan_backward
