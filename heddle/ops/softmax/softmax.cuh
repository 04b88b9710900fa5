// Tile body of softmax. Included once per target, inside its namespace.
namespace softmax {

struct Body {
  template <class Block>
  static void run(Block& block, const Softmax& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), y = block.row(a.y, row);
      const float top = block.reduce(columns, Max(), [&](auto i) { return x.load(i); });
      const float sum = block.reduce(columns, Sum(), [&](auto i) { return exp(x.load(i) - top); });
      const float scale = 1 / sum;
      block.map(columns, [&](auto i) { y.store(i, exp(x.load(i) - top) * scale); });
    }
  }
};

}  // namespace softmax
