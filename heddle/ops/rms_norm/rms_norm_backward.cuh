// Tile body of rms_norm_backward. Included once per target, inside its namespace.
namespace rms_norm_backward {

struct Body {
  // dx of a row; returns its scale.
  template <class Block>
  static float backward_row(Block& block, const RmsNormBackward& a, i32 row) {
    auto x = block.row(a.x, row), dy = block.row(a.dy, row), dx = block.row(a.dx, row);
    auto weight = block.row(a.weight);
    const i32 columns = a.x.last();
    const float squares = block.reduce(columns, Sum(), [&](auto i) {
      auto v = x.load(i);
      return v * v;
    });
    const float product =
        block.reduce(columns, Sum(), [&](auto i) { return x.load(i) * (dy.load(i) * weight.load(i)); });
    const float scale = rsqrt(squares / float(columns) + a.eps);
    const float along = product / float(columns) * scale * scale;
    const auto value = [&](auto i) { return (dy.load(i) * weight.load(i) - x.load(i) * along) * scale; };
    if (a.dsum.exists()) {
      auto dsum = block.row(a.dsum, row);
      block.map(columns, [&](auto i) { dx.store(i, value(i) + dsum.load(i)); });
    } else {
      block.map(columns, [&](auto i) { dx.store(i, value(i)); });
    }
    return scale;
  }

  template <class Block>
  static void run(Block& block, const RmsNormBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 parts = a.parts();
    auto scales = block.scratch(a.most_rows());
    for (i32 part = t[0]; part < t[1]; ++part) {
      const i32 rows = rows_in_part(a.x.size[0], parts, part);
      for (i32 n = 0; n < rows; ++n) scales.set(n, backward_row(block, a, part + n * parts));
      block.sync();
      auto dweight = block.row(a.dweight_parts, part);
      block.map(a.x.last(), [&](auto i) {
        auto sum = block.row(a.dy, part).load(i) * (block.row(a.x, part).load(i) * scales.get(0));
        for (i32 n = 1; n < rows; ++n) {
          const i32 row = part + n * parts;
          sum = sum + block.row(a.dy, row).load(i) * (block.row(a.x, row).load(i) * scales.get(n));
        }
        dweight.store(i, sum);
      });
      block.sync();
    }
  }
};

}  // namespace rms_norm_backward
