// Tile body of activation. Included once per target, inside its namespace.
namespace activation {

#include "heddle/ops/activation/activate.cuh"

struct Body {
  template <class Block, class Fragment>
  static void epilogue(Block& block, const Activation& a, Fragment& fragment) {
    block.map_rows(
        fragment.rows, fragment.cols,
        [&](i32 m, auto i) { return activate(a.kind, fragment.row(m).load(i)); },
        [&](i32 m, auto i, auto value) { fragment.row(m).store(i, value); });
    block.sync();
  }

  template <class Block, class Columns>
  static void columns(Block&, const Activation& a, i32, Columns& columns) {
    columns.each([&](auto, auto& value) { value = activate(a.kind, value); });
  }

  template <class Block>
  static void run(Block& block, const Activation& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]);
      auto y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, activate(a.kind, x.load(i))); });
    }
  }
};

}  // namespace activation
