// Tile body of add. Included once per target, inside its namespace.
namespace add {

struct Body {
  // Adds b's rows to a fragment; what is stored after it is y.
  template <class Block, class Fragment>
  static void epilogue(Block& block, const Add& a, Fragment& fragment) {
    block.map_rows(
        fragment.rows, fragment.cols,
        [&](i32 m, auto i) { return block.row(a.b, fragment.m0 + m).from(fragment.n0).load(i); },
        [&](i32 m, auto i, auto b) {
          auto value = fragment.row(m);
          auto sum = value.load(i) + b;
          value.store(i, sum);
          if (a.copy.exists()) block.row(a.copy, fragment.m0 + m).from(fragment.n0).store(i, sum);
        });
    block.sync();
  }

  template <class Block, class Columns>
  static auto ask(Block& block, const Add& a, i32 row, const Columns& columns) {
    return block.row(a.b, row).from(columns.at).ask(columns.count);
  }
  template <class Block, class Columns, class Asked>
  static void columns(Block& block, const Add& a, i32 row, Columns& columns, const Asked& b) {
    columns.each([&](auto i, auto& value) {
      value += b.get(i.at);
      if (a.copy.exists()) block.row(a.copy, row).from(columns.at).store(i, value);
    });
  }

  template <class Block>
  static void run(Block& block, const Add& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto left = block.row(a.a, row).from(t[2]);
      auto right = block.row(a.b, row).from(t[2]);
      auto y = block.row(a.y, row).from(t[2]);
      auto copy = a.copy.exists() ? block.row(a.copy, row).from(t[2]) : y;
      // Either output may lie in place of an input: both are stored once an element of the sum is known.
      block.map(t[3] - t[2], [&](auto i) {
        auto sum = left.load(i) + right.load(i);
        copy.store(i, sum);
        y.store(i, sum);
      });
    }
  }
};

}  // namespace add
