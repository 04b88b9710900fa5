// Tile body of rms_norm_residual. Included once per target, inside its namespace.
namespace rms_norm_residual {

struct Body {
  // The sum is added up again where it is needed, as it is stored, so that a tile reads none of its outputs.
  template <class Block>
  static void run(Block& block, const RmsNormResidual& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last();
    auto weight = block.row(a.weight);
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), residual = block.row(a.residual, row);
      auto y = block.row(a.y, row), sum = block.row(a.sum, row);
      const auto value = [&](auto i) { return round_to(a.sum.dtype, x.load(i) + residual.load(i)); };
      const float squares = block.reduce(columns, Sum(), [&](auto i) {
        auto v = value(i);
        return v * v;
      });
      const float scale = rsqrt(squares / float(columns) + a.eps);
      block.map(columns, [&](auto i) {
        auto v = value(i);
        y.store(i, v * scale * weight.load(i));
        sum.store(i, v);
      });
    }
  }
};

}  // namespace rms_norm_residual
