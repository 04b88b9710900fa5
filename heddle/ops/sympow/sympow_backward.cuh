// Tile body of sympow_backward. Included once per target, inside its namespace.
namespace sympow_backward {

#include "heddle/ops/sympow/sympow_gradient.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const SympowBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 rows = block.rows(t), dim = a.x.last();
    auto view = block.scratch(dim * rows);
    const Turned<decltype(view)> x{view, rows}, dx{block.scratch(dim * rows), rows};
    block.map_rows(dim, rows, [&](i32 k, auto m) {
      x.element(k).store(m, block.row(a.x, t[0]).from(k).every(a.x.stride[0]).load(m));
      dx.element(k).store(m, decltype(x.element(k).load(m))(0.0f));
    });
    block.sync();
    for (i32 number = 0; number < a.dy.last() / kSympowGroup; ++number)
      add_group(block, sympow_group(a.power, number), x, dx, [&](i32 c) {
        return block.row(a.dy, t[0]).from(number * kSympowGroup + c).every(a.dy.stride[0]);
      });
    block.map_rows(dim, rows, [&](i32 k, auto m) {
      block.row(a.dx, t[0]).from(k).every(a.dx.stride[0]).store(m, dx.element(k).load(m));
    });
  }
};

}  // namespace sympow_backward
