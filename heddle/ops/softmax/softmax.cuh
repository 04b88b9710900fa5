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
      // No number is above the maximum: what is NaN stays NaN, and so do rows that are -infinity throughout.
      const float sum = block.reduce(columns, Sum(), [&](auto i) {
        const auto below = x.load(i) - top;
        return where_less(below, decltype(below)(1.0f), exp(below), below);
      });
      const float scale = 1 / sum;
      block.map(columns, [&](auto i) { y.store(i, exp(x.load(i) - top) * scale); });
    }
  }
};

}  // namespace softmax
