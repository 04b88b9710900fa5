// Tile body of softmax. Included once per target, inside its namespace.
namespace softmax {

struct Body {
  template <class Block>
  static void run(Block& block, const Softmax& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last();
    auto weights = block.scratch(columns > kMostKeptWeights ? 0 : columns);
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), y = block.row(a.y, row);
      const float top = block.reduce(columns, Max(), [&](auto i) { return x.load(i); });
      if (columns > kMostKeptWeights) {
        const float sum = block.reduce(columns, Sum(), [&](auto i) { return exp(x.load(i) - top); });
        const float scale = 1 / sum;
        block.map(columns, [&](auto i) { y.store(i, exp(x.load(i) - top) * scale); });
        continue;
      }
      const float sum = block.reduce(columns, Sum(), [&](auto i) {
        const auto weight = exp(x.load(i) - top);
        weights.store(i, weight);
        return weight;
      });
      block.sync();
      const float scale = 1 / sum;
      block.map(columns, [&](auto i) { y.store(i, weights.load(i) * scale); });
      block.sync();
    }
  }
};

}  // namespace softmax
