// Tile body of layer_norm_residual. Included once per target, inside its namespace.
namespace layer_norm_residual {

struct Body {
  // A thread reads of the sum only what it has stored itself: the maps and sums below share one order.
  template <class Block>
  static void run(Block& block, const LayerNormResidual& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last();
    auto weight = block.row(a.weight);
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), residual = block.row(a.residual, row);
      auto y = block.row(a.y, row), sum = block.row(a.sum, row);
      block.map(columns, [&](auto i) { sum.store(i, x.load(i) + residual.load(i)); });
      const float mean = block.reduce(columns, Sum(), [&](auto i) { return sum.load(i); }) / float(columns);
      const float squares = block.reduce(columns, Sum(), [&](auto i) {
        auto v = sum.load(i) - mean;
        return v * v;
      });
      const float scale = rsqrt(squares / float(columns) + a.eps);
      const auto value = [&](auto i) { return (sum.load(i) - mean) * scale * weight.load(i); };
      if (a.bias.exists()) {
        auto bias = block.row(a.bias);
        block.map(columns, [&](auto i) { y.store(i, value(i) + bias.load(i)); });
      } else {
        block.map(columns, [&](auto i) { y.store(i, value(i)); });
      }
    }
  }
};

}  // namespace layer_norm_residual
