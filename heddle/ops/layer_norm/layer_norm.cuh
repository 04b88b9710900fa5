// Tile body of layer_norm. Included once per target, inside its namespace.
namespace layer_norm {

struct Body {
  // Normalises row `row` of x into `out`; the variance is taken around the mean, as two passes.
  template <class Block, class View>
  static void prologue(Block& block, const LayerNorm& a, i32 row, View out) {
    auto x = block.row(a.x, row);
    auto weight = block.row(a.weight);
    const i32 columns = a.x.last();
    const float mean = block.reduce(columns, Sum(), [&](auto i) { return x.load(i); }) / float(columns);
    const float squares = block.reduce(columns, Sum(), [&](auto i) {
      auto v = x.load(i) - mean;
      return v * v;
    });
    const float scale = rsqrt(squares / float(columns) + a.eps);
    if (a.bias.exists()) {
      auto bias = block.row(a.bias);
      block.map(
          columns, [&](auto i) { return (x.load(i) - mean) * scale * weight.load(i) + bias.load(i); },
          [&](auto i, auto value) { out.store(i, value); });
    } else {
      block.map(
          columns, [&](auto i) { return (x.load(i) - mean) * scale * weight.load(i); },
          [&](auto i, auto value) { out.store(i, value); });
    }
  }

  template <class Block>
  static void run(Block& block, const LayerNorm& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) prologue(block, a, row, block.row(a.y, row));
  }
};

}  // namespace layer_norm
