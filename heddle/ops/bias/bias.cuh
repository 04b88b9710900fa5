// Tile body of bias. Included once per target, inside its namespace.
namespace bias {

struct Body {
  template <class Block, class Fragment>
  static void epilogue(Block& block, const Bias& a, Fragment& fragment) {
    auto bias = block.row(a.bias).from(fragment.n0);
    block.map_rows(
        fragment.rows, fragment.cols, [&](i32, auto i) { return bias.load(i); },
        [&](i32 m, auto i, auto term) {
          auto value = fragment.row(m);
          value.store(i, value.load(i) + term);
        });
    block.sync();
  }

  template <class Block, class Columns>
  static auto ask(Block& block, const Bias& a, i32, const Columns& columns) {
    return block.row(a.bias).from(columns.at).ask(columns.count);
  }
  template <class Block, class Columns, class Asked>
  static void columns(Block&, const Bias&, i32, Columns& columns, const Asked& bias) {
    columns.each([&](auto i, auto& value) { value += bias.get(i.at); });
  }

  template <class Block>
  static void run(Block& block, const Bias& a, const TileCoord& t) {
    block.inputs();
    auto bias = block.row(a.bias).from(t[2]);
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]);
      auto y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, x.load(i) + bias.load(i)); });
    }
  }
};

}  // namespace bias
