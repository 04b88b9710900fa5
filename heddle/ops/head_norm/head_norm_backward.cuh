// Tile body of head_norm_backward. Included once per target, inside its namespace.
namespace head_norm_backward {

struct Body {
  // Writes dx of the head that begins at column `at`, and its mean and scale for the sums over rows.
  template <class Block, class View>
  static void backward_head(Block& block, const HeadNormBackward& a, i32 row, i32 at, View mean_and_scale) {
    auto x = block.row(a.x, row).from(at), dy = block.row(a.dy, row).from(at);
    auto dx = block.row(a.dx, row).from(at), weight = block.row(a.weight).from(at);
    const float each = 1 / float(a.head_dim);
    float mean = 0, given = 0;
    if (a.centred) {
      mean = block.reduce(a.head_dim, Sum(), [&](auto i) { return x.load(i); }) * each;
      given = block.reduce(a.head_dim, Sum(), [&](auto i) { return dy.load(i) * weight.load(i); }) * each;
    }
    const float squares = block.reduce(a.head_dim, Sum(), [&](auto i) {
      auto v = x.load(i) - mean;
      return v * v;
    });
    const float scale = rsqrt(squares * each + a.eps);
    const float along = block.reduce(a.head_dim, Sum(), [&](auto i) {
      return dy.load(i) * weight.load(i) * ((x.load(i) - mean) * scale);
    }) * each;
    block.map(a.head_dim, [&](auto i) {
      dx.store(i, (dy.load(i) * weight.load(i) - given - (x.load(i) - mean) * scale * along) * scale);
    });
    mean_and_scale.set(0, mean);
    mean_and_scale.set(1, scale);
  }

  // A head of the rows of one part.
  template <class Block, class View>
  static void backward_part(Block& block, const HeadNormBackward& a, i32 part, i32 rows, i32 at, View known) {
    for (i32 n = 0; n < rows; ++n) backward_head(block, a, part + n * a.parts(), at, known.from(2 * n));
    block.sync();
    auto dweight = block.row(a.dweight_parts, part).from(at);
    const auto term = [&](i32 n, auto i) {
      const i32 row = part + n * a.parts();
      auto x = block.row(a.x, row).from(at).load(i);
      return block.row(a.dy, row).from(at).load(i) * ((x - known.get(2 * n)) * known.get(2 * n + 1));
    };
    block.map(a.head_dim, [&](auto i) {
      auto sum = term(0, i);
      for (i32 n = 1; n < rows; ++n) sum = sum + term(n, i);
      dweight.store(i, sum);
    });
    block.sync();
  }

  template <class Block>
  static void run(Block& block, const HeadNormBackward& a, const TileCoord& t) {
    block.inputs();
    auto known = block.scratch(2 * a.most_rows());
    const i32 normed = a.heads * a.head_dim < t[3] ? a.heads * a.head_dim : t[3];
    const i32 rest = normed > t[2] ? normed : t[2];
    for (i32 part = t[0]; part < t[1]; ++part) {
      const i32 rows = rows_in_part(a.x.size[0], a.parts(), part);
      for (i32 at = t[2]; at < normed; at += a.head_dim) backward_part(block, a, part, rows, at, known);
      for (i32 row = part; row < a.x.size[0]; row += a.parts()) {
        auto dy = block.row(a.dy, row).from(rest), dx = block.row(a.dx, row).from(rest);
        block.map(t[3] - rest, [&](auto i) { dx.store(i, dy.load(i)); });
      }
    }
  }
};

}  // namespace head_norm_backward
