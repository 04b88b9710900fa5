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
    const i32 part_rows = a.rows_in_part();
    auto scales = block.scratch(part_rows);
    for (i32 first = t[0]; first < t[1]; first += part_rows) {
      const i32 rows = t[1] - first < part_rows ? t[1] - first : part_rows;
      for (i32 row = 0; row < rows; ++row) scales.set(row, backward_row(block, a, first + row));
      block.sync();
      auto part = block.row(a.dweight_parts, first / part_rows);
      block.map(a.x.last(), [&](auto i) {
        auto sum = block.row(a.dy, first).load(i) * (block.row(a.x, first).load(i) * scales.get(0));
        for (i32 row = 1; row < rows; ++row)
          sum = sum + block.row(a.dy, first + row).load(i) *
                          (block.row(a.x, first + row).load(i) * scales.get(row));
        part.store(i, sum);
      });
      block.sync();
    }
  }
};

}  // namespace rms_norm_backward
