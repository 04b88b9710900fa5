// Tile body of gated_activation. Included once per target, inside its namespace.
namespace gated_activation {

#include "heddle/ops/activation/activate.cuh"

struct Body {
  // Folds a fragment's pairs: half as many columns are left.
  template <class Block, class Fragment>
  static void epilogue(Block& block, const GatedActivation& a, Fragment& fragment) {
    Fragment folded = block.fragment(fragment.m0, fragment.rows, fragment.n0 / 2, fragment.cols / 2);
    block.map_rows(
        folded.rows, folded.cols,
        [&](i32 m, auto i) {
          auto pair = fragment.row(m).load_pair(i);
          return activate(a.kind, pair.first) * pair.second;
        },
        [&](i32 m, auto i, auto value) { folded.row(m).store(i, value); });
    block.sync();
    fragment = folded;
  }

  template <class Block, class Columns>
  static void columns(Block&, const GatedActivation& a, i32, Columns& columns) {
    columns = {columns.at / 2, 1, {activate(a.kind, columns.value[0]) * columns.value[1], 0}};
  }

  template <class Block>
  static void run(Block& block, const GatedActivation& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(2 * t[2]);
      auto y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        auto pair = x.load_pair(i);
        y.store(i, activate(a.kind, pair.first) * pair.second);
      });
    }
  }
};

}  // namespace gated_activation
