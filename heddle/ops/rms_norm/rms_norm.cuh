// Tile body of rms_norm. Included once per target, inside its namespace.
namespace rms_norm {

struct Body {
  // Normalises row `row` of x into `out`.
  template <class Block, class View>
  static void prologue(Block& block, const RmsNorm& a, i32 row, View out) {
    auto x = block.row(a.x, row);
    auto weight = block.row(a.weight);
    const i32 columns = a.x.last();
    float squares = block.reduce(columns, Sum(), [&](auto i) {
      auto v = x.load(i);
      return v * v;
    });
    float scale = rsqrt(squares / float(columns) + a.eps);
    block.map(
        columns, [&](auto i) { return x.load(i) * scale * weight.load(i); },
        [&](auto i, auto value) { out.store(i, value); });
  }

  template <class Block>
  static void run(Block& block, const RmsNorm& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) prologue(block, a, row, block.row(a.y, row));
  }
};

}  // namespace rms_norm
