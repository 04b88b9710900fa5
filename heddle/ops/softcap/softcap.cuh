// Tile body of softcap. Included once per target, inside its namespace.
namespace softcap {

struct Body {
  template <class Block, class Fragment>
  static void epilogue(Block& block, const Softcap& a, Fragment& fragment) {
    block.map_rows(fragment.rows, fragment.cols, [&](i32 m, auto i) {
      auto value = fragment.row(m);
      value.store(i, tanh(value.load(i) * (1 / a.cap)) * a.cap);
    });
    block.sync();
  }

  template <class Block, class Columns>
  static void columns(Block&, const Softcap& a, i32, Columns& columns) {
    columns.each([&](auto, auto& value) { value = tanh(value * (1 / a.cap)) * a.cap; });
  }

  template <class Block>
  static void run(Block& block, const Softcap& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]), y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, tanh(x.load(i) * (1 / a.cap)) * a.cap); });
    }
  }
};

}  // namespace softcap
