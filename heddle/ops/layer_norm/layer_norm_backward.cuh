// Tile body of layer_norm_backward. Included once per target, inside its namespace.
namespace layer_norm_backward {

struct Body {
  // Writes dx of a row, and its mean and scale for the sums over rows.
  template <class Block, class View>
  static void backward_row(Block& block, const LayerNormBackward& a, i32 row, View mean_and_scale) {
    auto x = block.row(a.x, row), dy = block.row(a.dy, row), dx = block.row(a.dx, row);
    auto weight = block.row(a.weight);
    const i32 columns = a.x.last();
    const float each = 1 / float(columns);
    const float mean = block.reduce(columns, Sum(), [&](auto i) { return x.load(i); }) * each;
    const float squares = block.reduce(columns, Sum(), [&](auto i) {
      auto v = x.load(i) - mean;
      return v * v;
    });
    const float scale = rsqrt(squares * each + a.eps);
    const float given =
        block.reduce(columns, Sum(), [&](auto i) { return dy.load(i) * weight.load(i); }) * each;
    const float along = block.reduce(columns, Sum(), [&](auto i) {
      return dy.load(i) * weight.load(i) * ((x.load(i) - mean) * scale);
    }) * each;
    const auto value = [&](auto i) {
      return (dy.load(i) * weight.load(i) - given - (x.load(i) - mean) * scale * along) * scale;
    };
    if (a.dsum.exists()) {
      auto dsum = block.row(a.dsum, row);
      block.map(columns, [&](auto i) { dx.store(i, value(i) + dsum.load(i)); });
    } else {
      block.map(columns, [&](auto i) { dx.store(i, value(i)); });
    }
    mean_and_scale.set(0, mean);
    mean_and_scale.set(1, scale);
  }

  // The sums of a part's rows, one row after the other.
  template <class Block, class View>
  static void sum_rows(Block& block, const LayerNormBackward& a, i32 part, i32 rows, View known) {
    auto dweight = block.row(a.dweight_parts, part);
    auto dbias = block.row(a.dbias_parts, part);
    block.map(a.x.last(), [&](auto i) {
      auto bias = block.row(a.dy, part).load(i);
      auto weight = bias * ((block.row(a.x, part).load(i) - known.get(0)) * known.get(1));
      for (i32 n = 1; n < rows; ++n) {
        auto dy = block.row(a.dy, part + n * a.parts()).load(i);
        auto x = block.row(a.x, part + n * a.parts()).load(i);
        weight = weight + dy * ((x - known.get(2 * n)) * known.get(2 * n + 1));
        bias = bias + dy;
      }
      dweight.store(i, weight);
      dbias.store(i, bias);
    });
  }

  template <class Block>
  static void run(Block& block, const LayerNormBackward& a, const TileCoord& t) {
    block.inputs();
    auto known = block.scratch(2 * a.most_rows());
    for (i32 part = t[0]; part < t[1]; ++part) {
      const i32 rows = rows_in_part(a.x.size[0], a.parts(), part);
      for (i32 n = 0; n < rows; ++n) backward_row(block, a, part + n * a.parts(), known.from(2 * n));
      block.sync();
      sum_rows(block, a, part, rows, known);
      block.sync();
    }
  }
};

}  // namespace layer_norm_backward
