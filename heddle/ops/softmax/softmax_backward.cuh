// Tile body of softmax_backward. Included once per target, inside its namespace.
namespace softmax_backward {

struct Body {
  template <class Block>
  static void run(Block& block, const SoftmaxBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.y.last();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto y = block.row(a.y, row), dy = block.row(a.dy, row), dx = block.row(a.dx, row);
      const float sum = block.reduce(columns, Sum(), [&](auto i) { return dy.load(i) * y.load(i); });
      block.map(columns, [&](auto i) { dx.store(i, y.load(i) * (dy.load(i) - sum)); });
    }
  }
};

}  // namespace softmax_backward
