// Tile body of rms_norm_residual. Included once per target, inside its namespace.
namespace rms_norm_residual {

struct Body {
  // A thread reads of the sum only what it has stored itself: the maps and sums below share one order.
  template <class Block>
  static void run(Block& block, const RmsNormResidual& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last();
    auto weight = block.row(a.weight);
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), residual = block.row(a.residual, row);
      auto y = block.row(a.y, row), sum = block.row(a.sum, row);
      block.map(columns, [&](auto i) { sum.store(i, x.load(i) + residual.load(i)); });
      const float squares = block.reduce(columns, Sum(), [&](auto i) {
        auto v = sum.load(i);
        return v * v;
      });
      const float scale = rsqrt(squares / float(columns) + a.eps);
      block.map(columns, [&](auto i) { y.store(i, sum.load(i) * scale * weight.load(i)); });
    }
  }
};

}  // namespace rms_norm_residual
