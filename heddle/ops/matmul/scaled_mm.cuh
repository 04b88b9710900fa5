// Tile body of scaled_mm. Included once per target, inside its namespace.
namespace scaled_mm {

struct Body {
  template <class Block>
  static void run(Block& block, const ScaledMm& a, const TileCoord& t) {
    if (a.groups() == 1) return with_one_scale(block, a, t);
    block.inputs();
    const i32 rows = block.rows(t), columns = t[3] - t[2], groups = a.groups();
    auto part = block.fragment(t[0], rows, t[2], columns);
    auto sums = block.scratch(rows * columns);
    for (i32 g = 0; g < groups; ++g) {
      const i32 begin = g * kScaleBlock, end = min(begin + kScaleBlock, a.terms());
      block.mma(part, a.a.slice(false, begin, end), a.b.slice(true, begin, end));
      block.sync();
      each_block(block, a, t, g, [&](i32 m, i32 c, auto i, auto scale) {
        auto sum = sums.from(m * columns + c);
        auto value = part.row(m).from(c).load(i) * scale;
        sum.store(i, g == 0 ? value : sum.load(i) + value);
      });
      block.sync();
    }
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      block.row(a.y, t[0] + m).from(t[2]).store(i, sums.from(m * columns).load(i));
    });
  }

  // Each row and column has one scale.
  template <class Block>
  static void with_one_scale(Block& block, const ScaledMm& a, const TileCoord& t) {
    block.inputs();
    auto part = block.fragment(t[0], block.rows(t), t[2], t[3] - t[2]);
    block.mma(part, a.a.matrix(), a.b.matrix());
    block.sync();
    store_scaled(block, a, t, part);
  }

  template <class Block, class Fragment>
  static void store_scaled(Block& block, const ScaledMm& a, const TileCoord& t, const Fragment& part) {
    each_block(block, a, t, 0, [&](i32 m, i32 c, auto i, auto scale) {
      block.row(a.y, t[0] + m).from(t[2] + c).store(i, part.row(m).from(c).load(i) * scale);
    });
  }

  // Calls f(row of the tile, a column c of it, i, the scale at column c + i) for all elements, 128 columns with one scale of b at a
  // time where it has such.
  template <class Block, class F>
  static void each_block(Block& block, const ScaledMm& a, const TileCoord& t, i32 g, F&& f) {
    const i32 rows = block.rows(t), columns = t[3] - t[2];
    const i32 group_a = a.scale_a.cols() == 1 ? 0 : g, group_b = a.scale_b.rows() == 1 ? 0 : g;
    const auto left = [&](i32 m) {
      return a.scale_a.rows() == 1 ? get(block, a.scale_a, 0, group_a)
                                   : get(block, a.scale_a, t[0] + m, group_a);
    };
    if (a.scale_b.cols() == a.columns() && a.columns() > 1) {
      if (a.scale_b.transposed)
        return block.map_rows(rows, columns, [&](i32 m, auto i) {
          auto scales = block.row(a.scale_b.data, t[2]).from(group_b).every(a.scale_b.data.stride[0]);
          f(m, 0, i, scales.load(i) * left(m));
        });
      return block.map_rows(rows, columns, [&](i32 m, auto i) {
        f(m, 0, i, block.row(a.scale_b.data, group_b).from(t[2]).load(i) * left(m));
      });
    }
    const bool one = a.scale_b.cols() == 1;
    for (i32 c = 0; c < columns;) {
      const i32 number = one ? 0 : (t[2] + c) / kScaleBlock;
      const i32 end = one ? columns : min(columns, (number + 1) * kScaleBlock - t[2]);
      const float right = get(block, a.scale_b, group_b, number);
      block.map_rows(rows, end - c, [&](i32 m, auto i) { f(m, c, i, right * left(m)); });
      c = end;
    }
  }
  template <class Block>
  static float get(Block& block, const Matrices& scales, i32 r, i32 c) {
    return scales.transposed ? block.row(scales.data, c).get(r) : block.row(scales.data, r).get(c);
  }
};

}  // namespace scaled_mm
