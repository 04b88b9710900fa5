// Tile body of sympow_mma_backward: 64 rows of the state at a time, times dy as the right matrix, give the gradient of a
// group of columns of phi. Included once per target, inside its namespace.
namespace sympow_mma_backward {

#include "heddle/ops/sympow/sympow_gradient.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const SympowMmaBackward& a, const TileCoord& t) {
    block.inputs();
    const ChunkTiles tiles = a.tiles();
    const i32 heads = a.x.size[2], b = t[0] / heads, h = t[0] % heads, begin = tiles.begin(t[1]);
    const i32 rows = tiles.end(t[1]) - begin, dim = a.x.size[3], columns = a.dy.size[3];
    const i32 width = a.width(), first = tiles.chunk_of(t[1]) * width;
    auto view = block.scratch(dim * rows);
    const Turned<decltype(view)> x{view, rows}, dx{block.scratch(dim * rows), rows};
    block.map_rows(dim, rows, [&](i32 k, auto m) {
      x.element(k).store(m, block.row(a.x, b, begin, h).from(k).every(a.x.stride[1]).load(m));
      dx.element(k).store(m, decltype(x.element(k).load(m))(0.0f));
    });
    auto product = block.product(kSympowGroup, rows, columns, a.dy.dtype);
    auto dphi = block.fragment(0, kSympowGroup, 0, rows);
    block.set_right_rows(product, 0, 0, Lines{block.row(a.dy, b, begin, h), a.dy.stride[1], rows, columns});
    for (i32 number = 0; number < width / kSympowGroup; ++number) {
      block.map_rows(kSympowGroup, columns, [&](i32 c, auto i) {
        product.left_row(c).store(i, block.row(a.s, b, h, first + number * kSympowGroup + c).load(i));
      });
      block.sync();
      block.mma(dphi, product);
      block.sync();
      add_group(block, sympow_group(a.power, number), x, dx, [&](i32 c) { return dphi.row(c); });
    }
    block.map_rows(dim, rows, [&](i32 k, auto m) {
      block.row(a.dx, b, begin, h).from(k).every(a.dx.stride[1]).store(m, dx.element(k).load(m));
    });
  }
};

}  // namespace sympow_mma_backward
