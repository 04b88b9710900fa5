// Tile body of multiply. Included once per target, inside its namespace.
namespace multiply {

struct Body {
  template <class Block, class Fragment>
  static void epilogue(Block& block, const Multiply& a, Fragment& fragment) {
    block.map_rows(fragment.rows, fragment.cols, [&](i32 m, auto i) {
      auto value = fragment.row(m);
      auto factor = block.row(a.b, fragment.m0 + m).from(fragment.n0);
      value.store(i, value.load(i) * factor.load(i));
    });
    block.sync();
  }

  template <class Block, class Columns>
  static auto ask(Block& block, const Multiply& a, i32 row, const Columns& columns) {
    return block.row(a.b, row).from(columns.at).ask(columns.count);
  }
  template <class Block, class Columns, class Asked>
  static void columns(Block&, const Multiply&, i32, Columns& columns, const Asked& factor) {
    columns.each([&](auto i, auto& value) { value *= factor.get(i.at); });
  }

  template <class Block>
  static void run(Block& block, const Multiply& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto left = block.row(a.a, row).from(t[2]), right = block.row(a.b, row).from(t[2]);
      auto y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, left.load(i) * right.load(i)); });
    }
  }
};

}  // namespace multiply
